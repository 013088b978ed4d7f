"""How a path that was found is written down.

In text it is relative to the working directory where it lies inside, absolute elsewhere; data
holds absolute paths. What no text can show is escaped in both.
"""

import re
from collections.abc import Iterable

_UNSHOWABLE = re.compile(r"[\x00-\x1f\x7f\u2028\u2029\ud800-\udfff]")
_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def shown(path: str, directory: str) -> str:
    """A path as text shows it to whoever works in `directory`."""
    return clean(path.removeprefix(directory if directory.endswith("/") else directory + "/"))


def all_shown(paths: Iterable[str], directory: str) -> list[str]:
    """The same of many paths, which is quick as long as all of them can be shown as they are."""
    prefix = directory if directory.endswith("/") else directory + "/"
    return all_clean(path.removeprefix(prefix) for path in paths)


def all_clean(paths: Iterable[str]) -> list[str]:
    """Many paths, each cleaned."""
    found = list(paths)
    return found if "".join(found).isprintable() else [clean(path) for path in found]


def clean(path: str) -> str:
    """A path with line breaks, controls and bytes that are no UTF-8 spelled out."""
    return path if path.isprintable() else _UNSHOWABLE.sub(_escape, path)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    return f"\\x{code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code:02x}"
