"""Choose the transport to a model server, and the proxy."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from handaxe.models.http.transport import (
    ANSWER_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    IDLE_VARIABLE,
    HttpTransport,
)

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def open_transport(url: str, env: Mapping[str, str], http: Any = None) -> HttpTransport:  # noqa: ANN401
    """h11 over asyncio, or httpx2 if there is a proxy or the caller has a client."""
    answer_timeout_s = _parse_milliseconds(env.get("API_TIMEOUT_MS")) or ANSWER_TIMEOUT_S
    idle_timeout_s = _parse_milliseconds(env.get(IDLE_VARIABLE)) or IDLE_TIMEOUT_S
    proxy = None if http is not None else find_proxy(url, env)
    if http is None and not proxy:
        from handaxe.models.http.asyncio_transport import DirectTransport

        return DirectTransport(
            env, answer_timeout_s=answer_timeout_s, idle_timeout_s=idle_timeout_s
        )
    from handaxe.models.http.httpx_transport import ClientTransport

    return ClientTransport(
        http, proxy=proxy, answer_timeout_s=answer_timeout_s, idle_timeout_s=idle_timeout_s
    )


def _parse_milliseconds(text: str | None) -> float | None:
    try:
        return max(float(text or 0), 0) / 1000 or None
    except ValueError:
        return None


def find_proxy(url: str, env: Mapping[str, str]) -> str | None:
    """The URL of the proxy, or None; servers on this machine are always reached directly."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if host in _LOOPBACK or _is_exempt(host, parts.port, env):
        return None
    named = _read_variable(env, f"{parts.scheme}_proxy") or _read_variable(env, "all_proxy")
    return f"http://{named}" if named and "://" not in named else named or None


def _read_variable(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or env.get(name.upper()) or "").strip()


def _is_exempt(host: str, port: int | None, env: Mapping[str, str]) -> bool:
    for raw in _read_variable(env, "no_proxy").lower().split(","):
        entry = raw.strip()
        name, _, only_port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        bare = name.lstrip("*").lstrip(".")
        is_host = bool(bare) and (host == bare or host.endswith(f".{bare}"))
        if entry == "*" or (is_host and only_port in ("", str(port))):
            return True
    return False
