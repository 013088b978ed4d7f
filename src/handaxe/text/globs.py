"""The Glob tool's dialect of path patterns: `**`, `{a,b}`, `[!x]` and escapes.

Paths are POSIX text, relative to the search directory or absolute. Nothing here walks a
directory.
"""

import re
from collections.abc import Sequence

from handaxe.text.gitignore import (
    MAX_PATTERN_CHARS,
    BadGlobPattern,
    Segment,
    Segments,
    build_regex,
    parse_segments,
)

MAX_ALTERNATIVES = 512

_BRACE_PIECE = re.compile(
    r"\\.|\[[!^]?\]?(?:\\.|\[:[a-z]+:\]|[^\]\\])*+\]|[{},]|[^\\\[{},]+|.", re.DOTALL
)


class GlobPattern:
    """A pattern of the Glob tool: `**`, `{a,b}`, `[!x]` and escapes, case-sensitive.

    Without a slash it matches in the search directory only; `**/` goes deeper.
    """

    __slots__ = (
        "_leading",
        "_parsed",
        "_regex",
        "endings",
        "endings_decide",
        "goes_everywhere",
        "is_absolute",
        "is_literal",
        "literal_directory",
        "max_depth",
        "only_dirs",
        "text",
    )

    def __init__(self, text: str) -> None:
        if len(text) > MAX_PATTERN_CHARS:
            raise BadGlobPattern(text, f"is longer than {MAX_PATTERN_CHARS} characters")
        if not text:
            raise BadGlobPattern(text, "is empty; write '**' for everything")
        self.text = text
        self.only_dirs = text.endswith("/")
        spellings = list(dict.fromkeys(expand_braces(text)))
        self.is_absolute = spellings[0].startswith("/")
        """Whether it has to be matched against absolute paths."""
        if any(spelling.startswith("/") != self.is_absolute for spelling in spellings):
            raise BadGlobPattern(
                text, "mixes absolute and relative alternatives; search twice instead"
            )
        parsed = [_parse_glob_segments(text, spelling) for spelling in spellings]
        depths = [len(segments) for segments in parsed if None not in segments]
        self.max_depth = max(depths) if len(depths) == len(parsed) else None
        """How many names deep a match can lie; None if `**` puts no end to it."""
        self.is_literal = all(part is not None and part.literal for item in parsed for part in item)
        """Whether it has no wildcard and so names each file it can match."""
        root = "/" if self.is_absolute else ""
        common = _find_common_prefix([_get_literal_prefix(item) for item in parsed])
        self.literal_directory = root + "/".join(common)
        """The directory that holds every match, so that a walk can start there; "" = here."""
        sources = "|".join(build_regex(segments) for segments in parsed)
        self._regex = re.compile(rf"{root}(?:{sources})\Z")
        last = [segments[-1] for segments in parsed]
        self.endings = tuple({segment.suffix if segment else "" for segment in last})
        """Every match ends in one of these; "" among them rules nothing out."""
        tails = [segments[len(common) :] for segments in parsed]
        self.goes_everywhere = all(tail[0] is None for tail in tails)
        """Whether every directory below the literal one may hold a match."""
        self.endings_decide = self.goes_everywhere and all(map(_is_only_an_ending, tails))
        """Whether every file below the literal directory fits that has one of the endings."""
        self._parsed = parsed
        self._leading: dict[int, re.Pattern[str]] = {}

    def matches(self, path: str, *, is_dir: bool = False) -> bool:
        """Whether the path, relative to the search directory or absolute, fits."""
        return (is_dir or not self.only_dirs) and self._regex.match(path) is not None

    def can_match_below(self, directory: str) -> bool:
        """Whether something below this directory, spelled as for `matches`, can fit."""
        directory = directory.removeprefix("/")
        depth = directory.count("/") + 1 if directory else 0
        if depth not in self._leading:
            sources = (_build_prefix_regex(segments, depth) for segments in self._parsed)
            source = "|".join(source for source in sources if source is not None)
            self._leading[depth] = re.compile(rf"(?:{source})\Z" if source or not depth else "(?!)")
        return self._leading[depth].match(directory) is not None


def expand_braces(pattern: str) -> list[str]:
    """Every spelling that the `{a,b}` of a pattern stand for, in order; braces may nest."""
    done = [""]
    waiting: list[tuple[list[str], list[str]]] = []
    for piece in _BRACE_PIECE.findall(pattern):
        if piece == "{":
            waiting.append((done, []))
            done = [""]
        elif piece == "," and waiting:
            waiting[-1][1].extend(done)
            done = [""]
        elif piece == "}":
            if not waiting:
                raise BadGlobPattern(
                    pattern, "has a '}' without its '{'; write '\\}' for the character"
                )
            before, options = waiting.pop()
            options.extend(done)
            if len(before) * len(options) > MAX_ALTERNATIVES:
                raise BadGlobPattern(
                    pattern, f"stands for more than {MAX_ALTERNATIVES} alternatives"
                )
            done = [head + option for head in before for option in options]
        else:
            done = [head + piece for head in done]
    if waiting:
        raise BadGlobPattern(pattern, "has a '{' without its '}'; write '\\{' for the character")
    return done


def _parse_glob_segments(pattern: str, spelling: str) -> Segments:
    kept: list[Segment | None] = []
    for segment in parse_segments(spelling.strip("/")):
        name = segment.literal if segment is not None else None
        if name in ("", "."):
            continue
        if name != "..":
            kept.append(segment)
        elif kept and kept[-1] is not None and kept[-1].literal is not None:
            kept.pop()
        else:
            raise BadGlobPattern(pattern, "climbs with '..'; search in another directory instead")
    if not kept:
        raise BadGlobPattern(pattern, "names no file; write '**' for everything")
    return tuple(kept)


def _build_prefix_regex(segments: Segments, depth: int) -> str | None:
    """A regular expression for parents of a match at this depth, or None if there is none."""
    sources: list[str] = []
    for segment in segments[:depth]:
        if segment is None:
            return "/".join([*sources, "(?s:.*)"])
        sources.append(segment.source)
    return "/".join(sources) if len(segments) > depth else None


def _is_only_an_ending(tail: Segments) -> bool:
    """Whether a tail is `**` or `**/*ending`."""
    last = tail[-1]
    if last is None:
        return len(tail) == 1
    ending = re.escape(last.suffix)
    return len(tail) == 2 and last.source in {f"[^/]*{ending}", "[^/]+"}


def _get_literal_prefix(segments: Segments) -> list[str]:
    names: list[str] = []
    for segment in segments[:-1]:
        if segment is None or segment.literal is None:
            break
        names.append(segment.literal)
    return names


def _find_common_prefix(paths: Sequence[Sequence[str]]) -> list[str]:
    shared: list[str] = []
    for names in zip(*paths, strict=False):
        if len(set(names)) > 1:
            break
        shared.append(names[0])
    return shared
