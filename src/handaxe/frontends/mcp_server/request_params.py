"""Parameters of several methods: cursors, progress tokens, capabilities."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from handaxe.frontends.mcp_server.jsonrpc import JsonRpcPeer, JsonRpcRequest
from handaxe.frontends.mcp_server.protocol import INVALID_PARAMS, LOG_LEVELS, REPORT_LEVEL, RpcError
from handaxe.text.urls import parse_file_uri


def check_cursor(params: dict[str, Any]) -> None:
    """Refuse a cursor: every list has one page, so no cursor exists."""
    if params.get("cursor") is not None:
        raise RpcError(INVALID_PARAMS, "Unknown cursor: every list has one page.")


def can_show_forms(capabilities: object) -> bool:
    """Whether a client with these capabilities can show forms."""
    declared = cast("dict[str, Any]", capabilities) if isinstance(capabilities, dict) else {}
    elicitation = declared.get("elicitation")
    if not isinstance(elicitation, dict):
        return False
    modes = cast("dict[str, Any]", elicitation)
    # The first revisions with forms declare them with an empty object.
    return not modes or modes.get("form") is not None or "url" not in modes


def is_logging_enabled(level: str) -> bool:
    """Whether a client with this log level gets the progress of calls."""
    return LOG_LEVELS.index(level) <= LOG_LEVELS.index(REPORT_LEVEL)


def create_progress_reporter(
    peer: JsonRpcPeer, request: JsonRpcRequest
) -> Callable[[str], None] | None:
    """The progress callback of a request; None if the client wants none."""
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
    """The existing directories of a client's `roots/list`, in its order."""
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
