"""Turn a requested change into a plan for a file's bytes, or into a fault.

Edit, MultiEdit and ApplyPatch all plan here, so they tolerate and refuse the same things. Lines
named by number and tag need no search: see `tagged_lines`.
"""

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.faults.file import Binary, CannotEncode, FileTooLarge, NotFound
from handaxe.contract.ports.files import Files, FileVersion, LoadedFile
from handaxe.session.read_ledger import KEPT_FILE_BYTES, LineChange, ReadLedger
from handaxe.text import replace
from handaxe.text.diff import Hunk, diff_plan
from handaxe.text.replace import Plan
from handaxe.text.replace.line_edits import LineEdits, LineHunk
from handaxe.text.replace.plan import NoAnchor, NoHeader, Overlapping, align_blocks
from handaxe.tools.files.edit_faults import (
    AlreadyThere,
    AmbiguousHunk,
    HunksOverlap,
    ManyMatches,
    NoChange,
    NoMatch,
    NoPlaceToAdd,
)
from handaxe.tools.files.freshness import (
    add_near_names,
    find_regular_file,
    is_filled,
    refuse_changed,
    refuse_unread_or_stale,
    to_line_changes,
)
from handaxe.tools.files.match_errors import (
    Missed,
    MissedEdit,
    Resend,
    add_file_window,
    build_no_match,
)


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
    """Find the places to replace.

    Raises:
        ToolFault: the text is missing or ambiguous.
    """
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
        edit = MissedEdit(old, new, replace_all)
        missed = build_no_match(content, path, edit, resend, ctx)
        raise add_file_window(missed, content, path, old, ctx) from None
    except replace.AmbiguousMatch as many:
        missed = ManyMatches(old, many.count, many.lines, many.matched_with)
        raise add_file_window(missed, content, path, old, ctx) from None


class HunkPlanner:
    """Finds the places of a file's hunks in order."""

    def __init__(self, content: bytes, path: str, ctx: ToolContext) -> None:
        self._content, self._path, self._ctx = content, path, ctx
        with convert_file_faults(content, path):
            self._edits = LineEdits(content, tolerance=ctx[Settings].edit.tolerance)

    def add(self, hunk: LineHunk) -> None:
        """Find the place of one more hunk; a fault if it is missing or ambiguous."""
        old = "\n".join(hunk.old)
        try:
            with convert_file_faults(self._content, self._path):
                self._edits.add(hunk)
        except replace.NoPlace:
            raise self._missed(self._build_no_match(hunk), old) from None
        except replace.AmbiguousMatch as many:
            missed = AmbiguousHunk(old, many.count, many.lines, many.matched_with)
            raise self._missed(missed, old) from None
        except NoHeader as missing:
            raise self._missed(self._build_no_header(missing.header), missing.header) from None
        except NoAnchor:
            raise NoPlaceToAdd(hunk.new) from None
        except Overlapping as overlapping:
            raise HunksOverlap(line=overlapping.line) from None

    def plan(self) -> replace.Plan:
        """Join the plans of all hunks."""
        with convert_file_faults(self._content, self._path):
            return self._edits.plan()

    def _missed(self, fault: Missed, old: str) -> Missed:
        return add_file_window(fault, self._content, self._path, old, self._ctx)

    def _build_no_match(self, hunk: LineHunk) -> NoMatch:
        """Describe the nearest lines, or why an exact match does not count."""
        old = "\n".join(hunk.old)
        for bare, why in (
            (LineHunk(hunk.old, hunk.new, hunk.headers), "not at the end of the file"),
            (LineHunk(hunk.old, hunk.new), f"not after {' / '.join(hunk.headers)!r}"),
        ):
            if bare != hunk and self._has_place(bare):
                return NoMatch(old, f"The lines are in {self._path}, but {why}.")
        edit = MissedEdit(old, "\n".join(hunk.new))

        def resend(old: str, new: str) -> str | None:
            meant = _to_hunk(old, new, hunk)
            if not self._has_place(meant):
                return None
            return "the hunk with these lines:\n" + "\n".join(_list_hunk_lines(meant))

        missed = build_no_match(self._content, self._path, edit, resend, self._ctx)
        if corrected := missed.data.get("corrected"):
            meant = _to_hunk(corrected["old_string"], corrected["new_string"], hunk)
            missed.data["corrected"] = {"lines": list(_list_hunk_lines(meant))}
        return missed

    def _build_no_header(self, header: str) -> NoMatch:
        def resend(text: str, _: str) -> str:
            return f"@@ {text.strip()}"

        missed = build_no_match(
            self._content, self._path, MissedEdit(header, ""), resend, self._ctx
        )
        missed.data.pop("corrected", None)
        return missed

    def _has_place(self, hunk: LineHunk) -> bool:
        try:
            LineEdits(self._content, tolerance=self._ctx[Settings].edit.tolerance).add(hunk)
        except (
            replace.NoPlace,
            replace.AmbiguousMatch,
            replace.UnencodableCharacter,
            NoHeader,
            NoAnchor,
        ):
            return False
        return True


def _to_hunk(old: str, new: str, like: LineHunk) -> LineHunk:
    """The hunk with other lines."""
    old_lines, new_lines = (
        tuple(line.removesuffix("\r") for line in text.split("\n")) if text or known else ()
        for text, known in ((old, like.old), (new, like.new))
    )
    return msgspec.structs.replace(like, old=old_lines, new=new_lines)


def _list_hunk_lines(hunk: LineHunk) -> Iterator[str]:
    """The lines of a hunk with their prefixes."""
    old, new = hunk.old, hunk.new
    for block in align_blocks(old, new):
        gone = old[block.old_begin : block.old_end]
        if block.kept:
            yield from (f" {line}" for line in gone)
            continue
        yield from (f"-{line}" for line in gone)
        yield from (f"+{line}" for line in new[block.new_begin : block.new_end])


@contextmanager
def convert_file_faults(content: bytes, path: str) -> Generator[None]:
    """Turn errors about the file's content into faults."""
    try:
        yield
    except replace.SameText:
        raise NoChange from None
    except replace.UnencodableCharacter as cannot:
        raise CannotEncode(path, cannot.encoding, cannot.character) from None
    except replace.NotText:
        raise Binary(path, len(content)) from None


MAX_BYTES = 1 << 30
MAX_PIECES = 1_000
"""Above this number of pieces, the new content is joined before it is written."""


async def check_target(path: str, ctx: ToolContext, *, creates: bool) -> None:
    """Check what needs no matching.

    `creates`: the file must be missing or empty.
    """
    info = await find_regular_file(path, ctx)
    if info is None:
        if not creates:
            raise await add_near_names(NotFound(path), path, ctx)
    elif info.size_bytes > MAX_BYTES:
        raise FileTooLarge(path=path, size_bytes=info.size_bytes, limit_bytes=MAX_BYTES)
    elif not creates:
        await refuse_unread_or_stale(path, info, ctx)
    elif await is_filled(path, info.size_bytes, ctx):
        raise AlreadyThere(path=path)


async def load_as_read(path: str, ctx: ToolContext) -> LoadedFile:
    """Load the file if it did not change since it was read."""
    info = await find_regular_file(path, ctx)
    if info is None:
        raise NotFound(path)
    seen = await refuse_unread_or_stale(path, info, ctx)
    loaded = await ctx[Files].load(path, max_bytes=MAX_BYTES)
    refuse_changed(path, loaded.data, loaded.version, seen, ctx)
    return loaded


async def write_plan(
    path: str,
    loaded: LoadedFile,
    plan: Plan,
    ctx: ToolContext,
    *,
    changes: Sequence[LineChange] | None = None,
    shown: tuple[tuple[int, int], ...] = (),
) -> tuple[FileVersion, list[Hunk]]:
    """Write a plan and update the read ledger.

    `changes` are the named lines; a diff could only guess them among equal lines. `shown` are the
    new lines whose tags the result shows.
    """

    def compare() -> tuple[list[Hunk], Sequence[LineChange], list[bytes | memoryview]]:
        hunks = diff_plan(loaded.data, plan)
        changed = to_line_changes(hunks) if changes is None else changes
        if plan.places > MAX_PIECES:
            return hunks, changed, [plan.apply(loaded.data)]
        return hunks, changed, list(plan.pieces(loaded.data))

    hunks, changed, pieces = await ctx[Files].compute(compare, len(loaded.data))
    version = await ctx[Files].replace(path, pieces, expect=loaded.version)
    content = b"".join(pieces) if version.size_bytes <= KEPT_FILE_BYTES else None
    ctx[ReadLedger].record_edit(version, changed, content=content, shown=shown)
    return version, hunks
