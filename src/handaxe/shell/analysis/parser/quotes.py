"""Bash's quoting rules as text functions: `$'...'`, backticks, here-document lines."""

from __future__ import annotations

import re

_SIMPLE = {
    "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    "v": "\v", "\\": "\\", "'": "'", '"': '"', "?": "?",
}  # fmt: skip
_CODES = (
    (re.compile(r"x([0-9a-fA-F]{1,2})"), 16),
    (re.compile(r"u([0-9a-fA-F]{1,4})"), 16),
    (re.compile(r"U([0-9a-fA-F]{1,8})"), 16),
    (re.compile(r"([0-7]{1,3})"), 8),
)


def decode_ansi(text: str, at: int) -> tuple[str | None, int]:
    """The value of `$'...'` whose content starts at `at`, and its end; None if invalid."""
    out: list[str] = []
    while at < len(text):
        char = text[at]
        if char == "'":
            return "".join(out), at + 1
        if char != "\\":
            out.append(char)
            at += 1
            continue
        value, at = _decode_escape(text, at + 1)
        # Bash cuts the string at a NUL, and bytes above 127 depend on the locale.
        if value is None or value == "\0":
            return None, at
        out.append(value)
    return None, at


def _decode_escape(text: str, at: int) -> tuple[str | None, int]:
    follower = text[at : at + 1]
    if follower in _SIMPLE:
        return _SIMPLE[follower], at + 1
    if follower == "c" and at + 1 < len(text):
        code = ord(text[at + 1].upper()) ^ 64
        return (chr(code) if 0 < code < 128 else None), at + 2
    for pattern, radix in _CODES:
        found = pattern.match(text, at)
        if found:
            code = int(found.group(1), radix) & (0xFF if radix == 8 else 0x1FFFFF)
            is_byte = follower == "x" or radix == 8
            usable = code < 128 if is_byte else code < 0x110000 and not 0xD800 <= code < 0xE000
            return (chr(code) if usable else None), found.end()
    return "\\" + follower, at + 1


def unescape_backticks(text: str, at: int) -> tuple[str | None, int]:
    """The command between backticks whose content starts at `at`, and its end."""
    out: list[str] = []
    while at < len(text):
        char = text[at]
        if char == "`":
            return "".join(out), at + 1
        if char == "\\" and at + 1 < len(text):
            follower = text[at + 1]
            out.append(follower if follower in "$`\\" else "\\" + follower)
            at += 2
        else:
            out.append(char)
            at += 1
    return None, at


def read_heredoc(
    text: str, at: int, delimiter: str, *, joins: bool, strip_tabs: bool
) -> tuple[str | None, int]:
    """The body of a here-document starting at `at`, and the position after it; None if open."""
    body: list[str] = []
    size = len(text)
    while at < size:
        start = at
        line, at = _read_line(text, at, joins=joins)
        # Where tabs are stripped and lines joined, bash versions differ.
        if strip_tabs and "\n" in text[start : at - 1]:
            return None, at
        if strip_tabs:
            line = line.lstrip("\t")
        if line.removesuffix("\n") == delimiter:
            return "".join(body), at
        body.append(line)
    return None, at


def _read_line(text: str, at: int, *, joins: bool) -> tuple[str, int]:
    """One line with its newline; with `joins`, a final lone backslash continues the line."""
    out = ""
    while True:
        end = text.find("\n", at)
        if end < 0:
            return out + text[at:], len(text)
        line = text[at:end]
        slashes = len(line) - len(line.rstrip("\\"))
        if not joins or slashes % 2 == 0:
            return out + line + "\n", end + 1
        out += line[:-1]
        at = end + 1
