"""The name somebody probably meant: for unknown tools, parameters and values."""

from collections.abc import Iterable

_LONGEST = 100
"""Nobody mistypes a name longer than this; comparing it would only cost time."""


def find_closest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that looks most like `name`, or None if none is close."""
    if not name or len(name) > _LONGEST:
        return None
    by_shape: dict[str, str] = {}
    for candidate in candidates:
        by_shape.setdefault(_normalize_name(candidate), candidate)
    wanted = _normalize_name(name)
    if wanted in by_shape:
        return by_shape[wanted]
    holding = [shape for shape in by_shape if wanted in shape] if len(wanted) > 2 else []
    if len(holding) == 1:
        return by_shape[holding[0]]
    from difflib import get_close_matches

    close = get_close_matches(wanted, by_shape, n=1, cutoff=0.6)
    return by_shape[close[0]] if close else None


def _normalize_name(name: str) -> str:
    """`filePath`, `file-path` and `FILE_PATH` are one name to whoever mistypes it."""
    return name.casefold().replace("_", "").replace("-", "") or name
