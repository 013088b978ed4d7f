"""Arithmetic on absolute paths by name: nothing is looked up on disk."""

import re
from collections.abc import Iterable


def normalize(path: str) -> str:
    """An absolute path without `.`, `..`, doubled or trailing slashes."""
    if "/." not in path and "//" not in path and not path.endswith("/"):
        return path
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if parts:
                parts.pop()
        elif part not in {"", "."}:
            parts.append(part)
    return "/" + "/".join(parts)


def is_inside(path: str, directory: str) -> bool:
    """Whether `path` is `directory` or lies below it, by whole components."""
    return path == directory or path.startswith(
        directory if directory.endswith("/") else directory + "/"
    )


def is_within(path: str, places: Iterable[str]) -> bool:
    """Whether a path is one of the places or below one of them."""
    return any(is_inside(path, place) for place in places)


_MARK = "$'"
# Compiled with the first odd name, which most sessions never meet.
_HIDDEN = "\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff"
_ODD = f"[{_HIDDEN}]"
_QUOTED = rf"[{_HIDDEN}'\\]"
_PLAIN_ESCAPES = r"""[abeEfnrtv\\'"?]"""
_WHOLE = (
    rf"\$'(?:[^'\\]|\\(?:{_PLAIN_ESCAPES}|x[0-9a-fA-F]{{1,2}}|[0-7]{{1,3}}"
    r"|u[0-9a-fA-F]{1,4}|U[0-9a-fA-F]{1,8}))*'"
)
_ESCAPE = (
    rf"\\(?:({_PLAIN_ESCAPES})|x([0-9a-fA-F]{{1,2}})|([0-7]{{1,3}})"
    r"|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8}))"
).encode()
_SIGNS = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n",
    b"r": b"\r", b"t": b"\t", b"v": b"\v", b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip
_SPELLED = {"\n": r"\n", "\r": r"\r", "\t": r"\t", "'": r"\'", "\\": r"\\"}


def quote_path(path: str) -> str:
    """The path as text shows it: itself, or quoted if it cannot be shown or looks quoted."""
    return f"{_MARK}{re.sub(_QUOTED, _escape_match, path)}'" if _is_quoting_needed(path) else path


def unquote_path(text: str) -> str | None:
    """The path that a quoted spelling stands for; None where the text stands for itself.

    What needs no quotes has no second spelling: `$'.env'` is a file of just that name.
    """
    if not text.startswith(_MARK) or re.fullmatch(_WHOLE, text, re.DOTALL) is None:
        return None
    try:
        raw = text[len(_MARK) : -1].encode("utf-8", "surrogateescape")
        path = re.sub(_ESCAPE, _read, raw).decode("utf-8", "surrogateescape")
    except ValueError:
        # No bytes can hold a lone surrogate, and there are numbers of no character.
        return None
    return path if _is_quoting_needed(path) else None


def _is_quoting_needed(path: str) -> bool:
    if path.startswith(_MARK) and unquote_path(path) is not None:
        return True
    return not path.isprintable() and re.search(_ODD, path) is not None


def _escape_match(found: re.Match[str]) -> str:
    sign = found[0]
    if sign in _SPELLED:
        return _SPELLED[sign]
    code = ord(sign)
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"


def _read(found: re.Match[bytes]) -> bytes:
    sign, hexadecimal, octal, *numbers = found.groups()
    if sign is not None:
        return _SIGNS[sign]
    if hexadecimal is not None:
        return bytes([int(hexadecimal, 16)])
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    return chr(int(numbers[0] or numbers[1], 16)).encode()
