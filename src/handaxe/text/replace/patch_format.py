"""Patches as models write them: what they ask of which file.

    *** Begin Patch
    *** Update File: src/a.py
    @@ def f():
     kept
    -old
    +new
    *** End Patch

Belongs here: reading the text, with what models put around it. Does not: finding the lines in a
file (`handaxe.text.replace.line_edits`), reading or writing files.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec

from handaxe.text.replace.line_edits import LineHunk

BEGIN, END = "*** Begin Patch", "*** End Patch"
_UPDATE, _ADD, _DELETE = "*** Update File:", "*** Add File:", "*** Delete File:"
_MOVE, _LAST = "*** Move to:", "*** End of File"
_FILE_HEADS = (_UPDATE, _ADD, _DELETE)


class BadPatch(Exception):
    """The text is not a patch; `line` counts from 1, 0 without a line to blame."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


class FilePatch(msgspec.Struct, frozen=True, kw_only=True):
    """The changes that a patch makes to one file."""

    kind: Literal["update", "add", "delete"]
    path: str
    move_to: str | None = None
    hunks: tuple[LineHunk, ...] = ()
    content: str = ""
    """The whole of a new file."""


def parse_patch(text: str) -> tuple[FilePatch, ...]:
    """The changes of a patch, file by file.

    Text before its first line and after its last one is ignored: a shell's heredoc, a fence, words.
    A patch without its last line was cut off and is refused.

    Raises:
        BadPatch: It cannot be understood.
    """
    lines = _Lines(_split(text))
    found: dict[str, FilePatch] = {}
    while lines.skip_to_begin():
        while not lines.is_end():
            patch = _parse_file_patch(lines)
            known = found.get(patch.path)
            found[patch.path] = patch if known is None else _merge_patches(known, patch, lines)
    if not lines.has_begun:
        raise BadPatch(0, f"it has no line {BEGIN!r}")
    if not found:
        raise BadPatch(lines.number, "it names no file")
    return tuple(found.values())


def find_patch_paths(text: str) -> list[str]:
    """The files that an unfinished patch names so far."""
    heads = (line for line in text.split("\n") if line.startswith(_FILE_HEADS))
    return [path for line in heads if (path := line.partition(":")[2].strip())]


class _Lines:
    """The lines of a patch, one after the other."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self.has_begun = False

    @property
    def number(self) -> int:
        """The number of the line that comes next."""
        return self._at + 1

    def skip_to_begin(self) -> bool:
        """Go behind the next first line of a patch, if there is one."""
        while self._at < len(self._lines):
            self._at += 1
            if self._lines[self._at - 1].strip() == BEGIN:
                self.has_begun = True
                return True
        return False

    def is_end(self) -> bool:
        """Whether the patch ends here; then its last line is passed."""
        while self._at < len(self._lines) and not self._lines[self._at].strip():
            self._at += 1
        if self._at == len(self._lines):
            raise BadPatch(self._at, f"it was cut off: there is no line {END!r}")
        if self._lines[self._at].rstrip() != END:
            return False
        self._at += 1
        return True

    def take(self) -> str:
        """The next line."""
        self._at += 1
        return self._lines[self._at - 1]

    def peek(self) -> str | None:
        """The next line, which stays; None at the end of the text."""
        return self._lines[self._at] if self._at < len(self._lines) else None

    def body(self) -> Iterator[str]:
        """Lines up to the next that begins with a mark of its own."""
        while (line := self.peek()) is not None and not line.startswith(("***", "@@")):
            yield self.take()

    def build_error(self, reason: str) -> BadPatch:
        """The problem of the last line."""
        return BadPatch(self._at, reason)


def _split(text: str) -> list[str]:
    lines = text.split("\n")
    # Endings of the patch, not of the files it is for: those keep their own.
    if all(line.endswith("\r") for line in lines[:-1]):
        return [line.removesuffix("\r") for line in lines]
    return lines


def _parse_file_patch(lines: _Lines) -> FilePatch:
    head = lines.take()
    if head.startswith(_ADD):
        return FilePatch(kind="add", path=_parse_path(head, lines), content=_parse_content(lines))
    if head.startswith(_DELETE):
        return FilePatch(kind="delete", path=_parse_path(head, lines))
    if not head.startswith(_UPDATE):
        expected = ", ".join(repr(one) for one in _FILE_HEADS)
        raise lines.build_error(
            f"{_quote_line(head)} stands where one of {expected} or {END!r} has to"
        )
    path, move_to = _parse_path(head, lines), None
    following = lines.peek()
    if following is not None and following.startswith(_MOVE):
        move_to = _parse_path(lines.take(), lines)
    hunks = tuple(_parse_hunks(lines))
    if not hunks and move_to is None:
        raise lines.build_error(f"the update of {path} holds no lines to change")
    return FilePatch(kind="update", path=path, move_to=move_to, hunks=hunks)


def _parse_path(head: str, lines: _Lines) -> str:
    path = head.partition(":")[2].strip()
    if len(path) > 1 and path[0] == path[-1] and path[0] in "\"'`":
        path = path[1:-1]
    if not path:
        raise lines.build_error("a path is missing")
    return path


def _parse_content(lines: _Lines) -> str:
    content: list[str] = []
    blank = 0
    for line in lines.body():
        if line.startswith("+"):
            content += [""] * blank + [line[1:]]
            blank = 0
        elif line.strip():
            raise lines.build_error(
                f"{_quote_line(line)} is part of a new file and has to begin with '+'"
            )
        else:
            blank += 1
    return "".join(f"{line}\n" for line in content)


def _parse_hunks(lines: _Lines) -> Iterator[LineHunk]:
    while (line := lines.peek()) is not None:
        headers: list[str] = []
        has_header = False
        while line is not None and line.startswith("@@"):
            headers += _parse_header(lines.take())
            has_header, line = True, lines.peek()
        is_over = line is None or (line.startswith("***") and not line.startswith(_LAST))
        hunk = None if is_over else _parse_hunk(lines, tuple(headers))
        if hunk is not None and (hunk.old or hunk.new):
            yield hunk
        elif has_header:
            raise lines.build_error("a hunk holds no lines")
        if is_over:
            return


def _parse_header(line: str) -> list[str]:
    """The text after `@@`. Line numbers in it are unreliable and ignored."""
    text = line.removeprefix("@@").strip()
    if text.startswith("-") and "@@" in text:
        return []
    text = text.removesuffix("@@").strip()
    return [text] if text else []


def _parse_hunk(lines: _Lines, headers: tuple[str, ...]) -> LineHunk:
    old: list[str] = []
    new: list[str] = []
    blank = 0
    for line in lines.body():
        if not line:
            # An empty line inside is one whose blank was lost; at the end it parts hunks.
            blank += 1
            continue
        old += [""] * blank
        new += [""] * blank
        blank = 0
        if line[0] not in " -+":
            raise lines.build_error(f"{_quote_line(line)} begins with neither ' ', '-' nor '+'")
        if line[0] != "+":
            old.append(line[1:])
        if line[0] != "-":
            new.append(line[1:])
    following = lines.peek()
    is_last = following is not None and following.rstrip() == _LAST
    if is_last:
        lines.take()
    return LineHunk(tuple(old), tuple(new), headers, is_last)


def _merge_patches(known: FilePatch, more: FilePatch, lines: _Lines) -> FilePatch:
    if known.kind == more.kind == "update" and known.move_to is more.move_to is None:
        return msgspec.structs.replace(known, hunks=(*known.hunks, *more.hunks))
    raise lines.build_error(f"{more.path} is named twice")


def _quote_line(line: str) -> str:
    return repr(line if len(line) <= 80 else f"{line[:80]}...")
