"""Which way a request takes to a model server."""

from collections.abc import Mapping
from typing import Any

from handaxe.models.wire import ANSWER_TIMEOUT_S, IDLE_TIMEOUT_S, IDLE_VARIABLE, Wire


def open_wire(url: str, env: Mapping[str, str], http: Any = None) -> Wire:  # noqa: ANN401
    """The lean wire, or httpx2 where a proxy stands between or the caller has a client."""
    from handaxe.models.wire.proxies import proxy_for

    answer_timeout_s = _milliseconds(env.get("API_TIMEOUT_MS")) or ANSWER_TIMEOUT_S
    idle_timeout_s = _milliseconds(env.get(IDLE_VARIABLE)) or IDLE_TIMEOUT_S
    proxy = None if http is not None else proxy_for(url, env)
    if http is not None or proxy:
        from handaxe.models.wire.client import ClientWire

        return ClientWire(
            http, proxy=proxy, answer_timeout_s=answer_timeout_s, idle_timeout_s=idle_timeout_s
        )
    from handaxe.models.wire.direct import DirectWire

    return DirectWire(env, answer_timeout_s=answer_timeout_s, idle_timeout_s=idle_timeout_s)


def _milliseconds(text: str | None) -> float | None:
    try:
        return max(float(text or 0), 0) / 1000 or None
    except ValueError:
        return None
