"""The directories that a client works in: `file://` addresses as paths."""

from pathlib import Path
from typing import Any, cast

from handaxe.text.urls__file_address import parse_file_uri


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
