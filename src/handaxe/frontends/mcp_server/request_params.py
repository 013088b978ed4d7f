"""What requests of several methods have in common: cursors, progress tokens, capabilities."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from handaxe.frontends.mcp_server.jsonrpc import JsonRpcPeer, JsonRpcRequest
from handaxe.frontends.mcp_server.protocol import INVALID_PARAMS, LOG_LEVELS, REPORT_LEVEL, RpcError
from handaxe.text.urls import parse_file_uri


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


def parse_roots(answer: object) -> list[str]:
    """The directories a client's `roots/list` names, those that are there, in its order."""
    found = cast("dict[str, Any]", answer).get("roots") if isinstance(answer, dict) else None
    roots = cast("list[Any]", found) if isinstance(found, list) else []
    paths = (_parse_path(root) for root in roots)
    kept = dict.fromkeys(path for path in paths if path is not None)
    return [path for path in kept if _is_directory(path)]


def _parse_path(root: object) -> str | None:
    uri = cast("dict[str, Any]", root).get("uri") if isinstance(root, dict) else None
    return parse_file_uri(uri) if isinstance(uri, str) else None


def _is_directory(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False
