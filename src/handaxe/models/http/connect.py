"""Which transport a request to a model server takes, and through which proxy."""

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
    """The lean wire, or httpx2 where a proxy stands between or the caller has a client."""
    answer_timeout_s = _parse_milliseconds(env.get("API_TIMEOUT_MS")) or ANSWER_TIMEOUT_S
    idle_timeout_s = _parse_milliseconds(env.get(IDLE_VARIABLE)) or IDLE_TIMEOUT_S
    proxy = None if http is not None else find_proxy(url, env)
    if http is not None or proxy:
        from handaxe.models.http.httpx_transport import ClientTransport

        return ClientTransport(
            http, proxy=proxy, answer_timeout_s=answer_timeout_s, idle_timeout_s=idle_timeout_s
        )
    from handaxe.models.http.asyncio_transport import DirectTransport

    return DirectTransport(env, answer_timeout_s=answer_timeout_s, idle_timeout_s=idle_timeout_s)


def _parse_milliseconds(text: str | None) -> float | None:
    try:
        return max(float(text or 0), 0) / 1000 or None
    except ValueError:
        return None


def find_proxy(url: str, env: Mapping[str, str]) -> str | None:
    """The proxy's own address, or None; this machine is always reached directly."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    if host in _LOOPBACK or _is_exempt(host, parts.port, env):
        return None
    named = _read_variable(env, f"{parts.scheme}_proxy") or _read_variable(env, "all_proxy")
    if not named:
        return None
    return named if "://" in named else f"http://{named}"


def _read_variable(env: Mapping[str, str], name: str) -> str:
    return (env.get(name) or env.get(name.upper()) or "").strip()


def _is_exempt(host: str, port: int | None, env: Mapping[str, str]) -> bool:
    for raw in _read_variable(env, "no_proxy").lower().split(","):
        entry = raw.strip()
        if entry == "*":
            return True
        name, _, only_port = entry.partition(":") if entry.count(":") == 1 else (entry, "", "")
        if only_port and only_port != str(port or ""):
            continue
        bare = name.lstrip("*").lstrip(".")
        if bare and (host == bare or host.endswith(f".{bare}")):
            return True
    return False
