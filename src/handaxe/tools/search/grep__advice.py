"""What to write instead of a pattern that cannot be read, where that can be told."""

import re
from collections.abc import Mapping

from handaxe.text.escape__near_names import find_closest_name

_LONE_BRACE = re.compile(r"(?<!\\)((?:\\\\)*)\{(?!\d+(?:,\d*)?\}|,\d+\})")
_LOOK_AROUND = re.compile(r"\(\?<?=((?:[^()\\]|\\.)*)\)")


def suggest_pattern(pattern: str, diagnostic: str) -> str | None:
    """A sentence with the corrected pattern, or None."""
    if "not allowed in a regex" in diagnostic:
        return "To match across lines, set multiline=true."
    if "backreferences are not supported" in diagnostic:
        return "Search for the part before the back-reference and filter the result."
    if "look-around" in diagnostic:
        return _strip_look_around(pattern)
    fixed = _escape_pattern(pattern, diagnostic)
    if fixed is None or fixed == pattern:
        return None
    return f"To search for the characters themselves: pattern: {fixed}"


def suggest_glob(glob: str, diagnostic: str) -> str | None:
    """A sentence with the corrected glob, or None."""
    if "[" in glob and ("character class" in diagnostic or "'['" in diagnostic):
        return f"To mean the character itself: glob: {_escape_each(glob, '[')}"
    if "{" in glob and ("alternate" in diagnostic or "'{'" in diagnostic):
        return f"To mean the character itself: glob: {_escape_each(glob, '{')}"
    return None


def suggest_type(name: str, types: Mapping[str, tuple[str, ...]]) -> str:
    """The type that was probably meant, or how to do without one."""
    plain = name.lower().removeprefix(".")
    by_ending = [known for known, globs in types.items() if f"*.{plain}" in globs]
    near = min(by_ending, key=len) if by_ending else find_closest_name(plain, types)
    if near is not None:
        return f"Did you mean type={near!r}?"
    return f"Use glob instead, for example glob='*.{plain}'."


def _strip_look_around(pattern: str) -> str:
    fixed = _LOOK_AROUND.sub(r"\1", pattern)
    if fixed == pattern or re.search(r"\(\?<?[=!]", fixed):
        return "Leave the look-around out and filter the result."
    return f"Without look-around: pattern: {fixed}"


def _escape_pattern(pattern: str, diagnostic: str) -> str | None:
    if "quantifier" in diagnostic or "counted repetition" in diagnostic:
        return _LONE_BRACE.sub(r"\1\\{", pattern)
    if "group" in diagnostic:
        return _escape_each(_escape_each(pattern, "("), ")")
    if "character class" in diagnostic:
        return _escape_each(pattern, "[")
    if "missing expression" in diagnostic:
        return re.sub(r"^([*+?]+)", lambda found: re.escape(found[1]), pattern)
    if "incomplete escape" in diagnostic:
        return pattern + "\\"
    return None


def _escape_each(text: str, char: str) -> str:
    """Every `char` that has no backslash gets one."""
    return re.sub(rf"(\\.)|{re.escape(char)}", lambda m: m[1] or "\\" + char, text, flags=re.DOTALL)
