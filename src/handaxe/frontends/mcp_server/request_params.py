"""What requests of several methods have in common: cursors, progress tokens, capabilities."""

from collections.abc import Callable
from typing import Any, cast

from handaxe.frontends.mcp_server.jsonrpc import JsonRpcPeer, JsonRpcRequest
from handaxe.frontends.mcp_server.protocol import (
    INVALID_PARAMS,
    LOG_LEVELS,
    REPORT_LEVEL,
    RpcError,
)


def check_cursor(params: dict[str, Any]) -> None:
    """Refuse a cursor: every list is one page, so that none was ever given out."""
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "The cursor is unknown: every list is one page.")


def can_show_forms(capabilities: object) -> bool:
    """Whether a client that declares these capabilities can put a form to its user."""
    declared = cast("dict[str, Any]", capabilities) if isinstance(capabilities, dict) else {}
    elicitation = declared.get("elicitation")
    if not isinstance(elicitation, dict):
        return False
    modes = cast("dict[str, Any]", elicitation)
    # An empty object is how the first revisions with forms say it.
    return not modes or modes.get("form") is not None or "url" not in modes


def is_logging_enabled(level: str) -> bool:
    """Whether a client that chose this level wants to read what calls report."""
    return LOG_LEVELS.index(level) <= LOG_LEVELS.index(REPORT_LEVEL)


def create_progress_reporter(
    peer: JsonRpcPeer, request: JsonRpcRequest
) -> Callable[[str], None] | None:
    """Says how far a request is; None if the client does not want to know."""
    token = request.meta.get("progressToken")
    if not isinstance(token, str | int):
        return None
    steps = 0

    def tell(text: str) -> None:
        nonlocal steps
        steps += 1
        told = {"progressToken": token, "progress": steps, "message": text}
        peer.notify("notifications/progress", told)

    return tell
