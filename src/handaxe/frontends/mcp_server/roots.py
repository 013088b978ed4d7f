"""The directories that a client works in: `file://` addresses as paths."""

import re
from pathlib import Path
from typing import Any, cast

_FILE_URI = re.compile(rb"file:(?://(?:localhost)?(?=/)|(?=/(?!/)))", re.IGNORECASE)


def directories_of(answer: object) -> list[str]:
    """The directories a client's `roots/list` names, those that are there, in its order."""
    found = cast("dict[str, Any]", answer).get("roots") if isinstance(answer, dict) else None
    roots = cast("list[Any]", found) if isinstance(found, list) else []
    paths = (_path_of(root) for root in roots)
    kept = dict.fromkeys(path for path in paths if path is not None)
    return [path for path in kept if _is_directory(path)]


def path_of(uri: str) -> str | None:
    """The path that a `file:` address stands for; None for any other address."""
    from urllib.parse import unquote_to_bytes

    try:
        raw = uri.encode()
    except UnicodeEncodeError:
        return None
    found = _FILE_URI.match(raw)
    if found is None:
        return None
    # What follows ? or # belongs to the address; in a path both are written as escapes.
    decoded = unquote_to_bytes(re.split(rb"[?#]", raw[found.end() :])[0])
    return None if b"\0" in decoded else decoded.decode("utf-8", "surrogateescape")


def _path_of(root: object) -> str | None:
    uri = cast("dict[str, Any]", root).get("uri") if isinstance(root, dict) else None
    return path_of(uri) if isinstance(uri, str) else None


def _is_directory(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except (OSError, ValueError):
        return False
