"""From a wanted change to a plan for a file's bytes; what is wrong with it becomes a fault.

Edit, MultiEdit and ApplyPatch all plan here, so that they forgive and refuse the same things.
Lines that are named by number and tag need no search: `tagged_lines`.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.faults.file import Binary, CannotEncode
from handaxe.text import replace
from handaxe.text.replace.line_edits import (
    LineEdits,
    LineHunk,
    NoAnchor,
    NoHeader,
    Overlapping,
)
from handaxe.tools.files.edit_faults import (
    HunksOverlap,
    ManyHunkPlaces,
    ManyMatches,
    NoChange,
    NoMatch,
    NoPlaceToAdd,
)
from handaxe.tools.files.match_errors import Missed, add_file_window, explain_no_match

Resend = Callable[[str], str]
"""What to send if a text that nearly fits is the one that was meant."""


def plan_replacement(
    content: bytes,
    path: str,
    old: str,
    new: str,
    *,
    replace_all: bool,
    resend: Resend,
    ctx: ToolContext,
) -> replace.Plan:
    """Where a replacement goes; a fault if that is nowhere, or not one place."""
    try:
        with convert_file_faults(content, path):
            return replace.plan_replacement(
                content,
                old,
                new,
                replace_all=replace_all,
                tolerance=ctx[Settings].edit.tolerance,
            )
    except replace.NoPlace:
        missed = NoMatch(old, explain_no_match(content, path, old, resend))
        raise add_file_window(missed, content, path, old, ctx) from None
    except replace.ManyPlaces as many:
        missed = ManyMatches(old, many.count, many.lines, many.matched_with)
        raise add_file_window(missed, content, path, old, ctx) from None


class HunkPlanner:
    """Finds the places of a file's hunks, one after the other."""

    def __init__(self, content: bytes, path: str, ctx: ToolContext) -> None:
        self._content, self._path, self._ctx = content, path, ctx
        with convert_file_faults(content, path):
            self._edits = LineEdits(content, tolerance=ctx[Settings].edit.tolerance)

    def add(self, hunk: LineHunk) -> None:
        """Find the place of one more; a fault if there is none, or not one."""
        old = "\n".join(hunk.old)
        try:
            with convert_file_faults(self._content, self._path):
                self._edits.add(hunk)
        except replace.NoPlace:
            raise self._missed(NoMatch(old, self._explain_miss(hunk)), old) from None
        except replace.ManyPlaces as many:
            missed = ManyHunkPlaces(old, many.count, many.lines, many.matched_with)
            raise self._missed(missed, old) from None
        except NoHeader as missing:
            help_text = explain_no_match(
                self._content, self._path, missing.header, _format_as_header
            )
            missed = NoMatch(f"@@ {missing.header}", help_text)
            raise self._missed(missed, missing.header) from None
        except NoAnchor:
            raise NoPlaceToAdd(hunk.new) from None
        except Overlapping as overlapping:
            raise HunksOverlap(overlapping.line) from None

    def plan(self) -> replace.Plan:
        """All of them as one plan."""
        with convert_file_faults(self._content, self._path):
            return self._edits.plan()

    def _missed(self, fault: Missed, old: str) -> Missed:
        return add_file_window(fault, self._content, self._path, old, self._ctx)

    def _explain_miss(self, hunk: LineHunk) -> str:
        """Where the lines nearly stand, or why the place where they do stand does not count."""
        for bare, why in (
            (LineHunk(hunk.old, hunk.new, hunk.headers), "not at the end of the file"),
            (LineHunk(hunk.old, hunk.new), f"not behind {' / '.join(hunk.headers)!r}"),
        ):
            if bare == hunk:
                continue
            try:
                LineEdits(self._content).add(bare)
            except (replace.NoPlace, replace.ManyPlaces, NoHeader, NoAnchor):
                continue
            return f"The lines are in {self._path}, but {why}."
        return explain_no_match(self._content, self._path, "\n".join(hunk.old), _format_as_lines)


def _format_as_lines(text: str) -> str:
    return "begin the hunk with these lines as they stand in the file:\n" + "\n".join(
        f" {line}" for line in text.splitlines()
    )


def _format_as_header(text: str) -> str:
    return f"@@ {text.strip()}"


@contextmanager
def convert_file_faults(content: bytes, path: str) -> Generator[None]:
    """What the engine refuses for the file's sake, as faults."""
    try:
        yield
    except replace.SameText:
        raise NoChange from None
    except replace.UnencodableCharacter as cannot:
        raise CannotEncode(path, cannot.encoding, cannot.character) from None
    except replace.NotText:
        raise Binary(path, len(content)) from None
