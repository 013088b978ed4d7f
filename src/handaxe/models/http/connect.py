"""Which way a request takes to a model server."""

from collections.abc import Mapping
from typing import Any

from handaxe.models.http.transport import (
    ANSWER_TIMEOUT_S,
    IDLE_TIMEOUT_S,
    IDLE_VARIABLE,
    HttpTransport,
)


def open_transport(url: str, env: Mapping[str, str], http: Any = None) -> HttpTransport:  # noqa: ANN401
    """The lean wire, or httpx2 where a proxy stands between or the caller has a client."""
    from handaxe.models.http.proxies import find_proxy

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
