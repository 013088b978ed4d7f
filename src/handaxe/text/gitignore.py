"""Gitignore matching: patterns compiled once to regular expressions.

The grammar of segments that ignore files, path rules and the Glob tool (`text.globs`) share, and
the dialect of ignore files (`IgnorePattern`, `IgnoreFile`). Paths are POSIX text, relative to the
directory the pattern belongs to and without `.`, `..` or doubled slashes. Nothing here walks a
directory or reads a file.

Matching takes linear time for every pattern. Inside a segment every run between two stars has a
fixed length, and between two `**` there is a fixed number of segments. So the leftmost place of
such a run is always right, and an atomic group may keep it.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

MAX_PATTERN_CHARS = 4096

_POSIX_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}
_SPECIAL = r"[\\*?\[\]{}!#]| $"
_STAR = ""
"""Stands for `*` among the pieces of a segment; every other piece matches one character."""


class BadGlobPattern(ValueError):
    """A pattern that cannot be read; the sentence says what is wrong with it."""

    def __init__(self, pattern: str, problem: str) -> None:
        shown = pattern if len(pattern) <= 80 else pattern[:77] + "..."
        self.sentence = f"The pattern {shown!r} {problem}."
        super().__init__(self.sentence)


class Segment(msgspec.Struct, frozen=True):
    """One part of a pattern between slashes."""

    source: str
    """A regular expression that matches the whole segment and never a slash."""
    literal: str | None
    """The one name it matches, if it has no wildcard."""
    suffix: str
    """The common suffix of every matching name."""
    prefix: str = ""
    """The common prefix of every matching name."""


Segments = tuple[Segment | None, ...]
"""A path pattern; None stands for `**`, any number of directories."""


def parse_segments(pattern: str) -> Segments:
    """The segments of a pattern without its leading and trailing slash; runs of `**` are one."""
    if len(pattern) > MAX_PATTERN_CHARS:
        raise BadGlobPattern(pattern, f"is longer than {MAX_PATTERN_CHARS} characters")
    if "\0" in pattern:
        raise BadGlobPattern(pattern, "holds a NUL character")
    segments: list[Segment | None] = []
    for raw, pieces in _split(pattern):
        deep = raw == "**"
        if not deep or not segments or segments[-1] is not None:
            segments.append(None if deep else _build_segment(pieces))
    return tuple(segments)


def build_literal_segments(path: str) -> Segments:
    """The segments that match exactly this path, whatever characters it holds."""
    return tuple(Segment(re.escape(name), name, name) for name in path.split("/"))


def build_regex(segments: Segments) -> str:
    """The regular expression of a whole path pattern, without an anchor at either end."""
    groups: list[list[str]] = [[]]
    for segment in segments:
        if segment is None:
            groups.append([])
        else:
            groups[-1].append(segment.source)
    first, *later = ["/".join(group) for group in groups]
    if not later:
        return first
    *middle, last = later
    start = f"{first}/" if first else ""
    hops = "".join(f"(?>(?:[^/]+/)*?{group}/)" for group in middle)
    return start + hops + (f"(?:[^/]+/)*{last}" if last else r"[^/](?s:.*)")


def escape(text: str) -> str:
    """A pattern that matches exactly this text."""
    return re.sub(_SPECIAL, r"\\\g<0>", text) if re.search(_SPECIAL, text) else text


def _split(pattern: str) -> Iterable[tuple[str, list[tuple[str, str | None]]]]:
    """Each segment's raw text and its pieces, each with the character it stands for, if one."""
    pieces: list[tuple[str, str | None]] = []
    start = at = 0
    while at < len(pattern):
        char = pattern[at]
        if char == "/":
            yield pattern[start:at], pieces
            pieces, start, at = [], at + 1, at + 1
            continue
        if char == "[":
            source, at = _parse_bracket(pattern, at)
            pieces.append((source, None))
            continue
        if char == "\\":
            at += 1
            if at == len(pattern):
                raise BadGlobPattern(pattern, "ends in a lone backslash")
            pieces.append((re.escape(pattern[at]), pattern[at]))
        elif char == "*":
            pieces.append((_STAR, None))
        else:
            pieces.append(("[^/]", None) if char == "?" else (re.escape(char), char))
        at += 1
    yield pattern[start:], pieces


def _build_segment(pieces: list[tuple[str, str | None]]) -> Segment:
    chars = [char for _, char in pieces]
    if None not in chars:
        literal = "".join(char for char in chars if char is not None)
        return Segment(re.escape(literal), literal, literal)
    tail = len(chars) - 1 - max(at for at, char in enumerate(chars) if char is None)
    suffix = "".join(char for char in chars[len(chars) - tail :] if char is not None)
    prefix = "".join(char for char in chars[: chars.index(None)] if char is not None)
    first, *later = _split_at_stars(source for source, _ in pieces)
    if not later:
        return Segment(first, None, suffix, prefix)
    *middle, last = later
    if not first and not last and not middle:
        return Segment("[^/]+", None, suffix, prefix)
    source = first + "".join(f"(?>[^/]*?{run})" for run in middle) + f"[^/]*{last}"
    return Segment(source, None, suffix, prefix)


def _split_at_stars(sources: Iterable[str]) -> list[str]:
    """The pieces between stars, joined; empty runs inside fall away, those at the ends stay."""
    runs: list[str] = [""]
    for source in sources:
        if source == _STAR:
            runs.append("")
        else:
            runs[-1] += source
    if len(runs) < 3:
        return runs
    return [runs[0], *(run for run in runs[1:-1] if run), runs[-1]]


def _parse_bracket(pattern: str, start: int) -> tuple[str, int]:
    """The regular expression of the class that opens at `start`, and where it ends."""
    at = start + 1
    negated = pattern[at : at + 1] in ("!", "^")
    at += negated
    items: list[str] = []
    first = True
    while first or pattern[at : at + 1] != "]":
        if at >= len(pattern):
            raise BadGlobPattern(
                pattern, "has a '[' without its ']'; write '\\[' for the character"
            )
        item, at = _parse_bracket_item(pattern, at)
        items.append(item)
        first = False
    inside = "".join(items)
    if negated:
        return f"[^/{inside}]", at + 1
    return (f"(?!/)[{inside}]" if inside else "(?!)"), at + 1


def _parse_bracket_item(pattern: str, at: int) -> tuple[str, int]:
    if pattern.startswith("[:", at):
        end = pattern.find(":]", at + 2)
        if end > 0 and (members := _POSIX_CLASSES.get(pattern[at + 2 : end])):
            return members, end + 2
        if end > 0 and pattern[at + 2 : end].isalpha():
            raise BadGlobPattern(pattern, f"names an unknown class {pattern[at : end + 2]!r}")
    low, at = _parse_bracket_char(pattern, at)
    if pattern[at : at + 1] != "-" or pattern[at + 1 : at + 2] in ("", "]"):
        return re.escape(low), at
    high, at = _parse_bracket_char(pattern, at + 1)
    # A range that runs backwards matches nothing, as in git.
    return (f"{re.escape(low)}-{re.escape(high)}" if low <= high else ""), at


def _parse_bracket_char(pattern: str, at: int) -> tuple[str, int]:
    if pattern[at] != "\\":
        return pattern[at], at + 1
    if at + 1 >= len(pattern):
        raise BadGlobPattern(pattern, "ends in a lone backslash")
    return pattern[at + 1], at + 2


class IgnorePattern:
    """One line of an ignore file, such as `!/build/**/*.log`."""

    __slots__ = ("_regex", "anchored", "negated", "only_dirs", "segments", "source", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.negated = text.startswith("!")
        body = text[1:] if self.negated else text
        self.only_dirs = body.endswith("/")
        body = body[:-1] if self.only_dirs else body
        self.anchored = "/" in body
        self.segments = parse_segments(body.removeprefix("/"))
        if not self.anchored:
            self.segments = (None, *self.segments) if self.segments[0] else (None,)
        self.source = build_regex(self.segments)
        self._regex = re.compile(self.source + r"\Z")

    def matches(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether the pattern names exactly this path, not one below it."""
        return (is_dir or not self.only_dirs) and self._regex.match(path) is not None


class IgnoreFile:
    """The patterns of one ignore file in their order: the last that matches decides.

    Invalid lines are left out, as git does.
    """

    __slots__ = ("_last_first", "_prefilter", "patterns")

    def __init__(self, text: str) -> None:
        patterns = [
            pattern
            for line in text.removeprefix("\ufeff").split("\n")
            if (pattern := _ignore_line(line)) is not None
        ]
        self.patterns: Sequence[IgnorePattern] = patterns
        self._last_first: Sequence[IgnorePattern] = patterns[::-1]
        sources = "|".join(dict.fromkeys(pattern.source for pattern in patterns))
        self._prefilter = re.compile(rf"(?:{sources})\Z") if patterns else None

    def verdict(self, path: str, *, is_dir: bool = False) -> bool | None:
        """True: ignored, False: wanted again by `!`, None: no line names exactly this path."""
        if self._prefilter is None or self._prefilter.match(path) is None:
            return None
        for pattern in self._last_first:
            if pattern.matches(path, is_dir=is_dir):
                return not pattern.negated
        return None

    def is_ignored(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether the path or a directory above it is ignored; below one nothing comes back."""
        slash = path.find("/")
        while slash >= 0:
            if self.verdict(path[:slash], is_dir=True):
                return True
            slash = path.find("/", slash + 1)
        return self.verdict(path, is_dir=is_dir) is True


def _ignore_line(line: str) -> IgnorePattern | None:
    line = line.removesuffix("\r")
    while line.endswith(" ") and not _has_trailing_escape(line[:-1]):
        line = line[:-1]
    if not line.strip("!/") or line.startswith("#"):
        return None
    try:
        return IgnorePattern(line)
    except BadGlobPattern:
        return None


def _has_trailing_escape(text: str) -> bool:
    return (len(text) - len(text.rstrip("\\"))) % 2 == 1
