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
from handaxe.net.proxy import find_proxy


def open_transport(url: str, env: Mapping[str, str], http: Any = None) -> HttpTransport:  # noqa: ANN401
    """h11 over asyncio, or httpx2 if there is a proxy or the caller has a client."""
    answer_timeout_s = _parse_milliseconds(env.get("API_TIMEOUT_MS")) or ANSWER_TIMEOUT_S
    idle_timeout_s = _parse_milliseconds(env.get(IDLE_VARIABLE)) or IDLE_TIMEOUT_S
    parts = urlsplit(url)
    proxy = None
    if http is None:
        proxy = find_proxy(parts.scheme, parts.hostname or "", parts.port, env)
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
