"""Turn lines named by number and tag into a plan for a file's bytes.

A tag that does not match its line is an error, never a guess; the error shows the current lines and
where the line may be now.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from handaxe.session.line_numbering import LineCandidates
from handaxe.session.read_ledger import LineChange
from handaxe.text import replace
from handaxe.text.line_tags import (
    LineRef,
    compute_tag,
    format_tagged_lines,
    make_line_ref,
    parse_shown_ref,
)
from handaxe.text.replace.numbered_edits import NumberedChange, NumberedEdits, SharedLine
from handaxe.tools.files.edit_faults import (
    ChangesOverlap,
    IsNotebook,
    LinesMoved,
    LinesNotShown,
    LinesUnchanged,
    WrongLines,
)
from handaxe.tools.files.edit_plan import convert_file_faults

MeantBy = Callable[[int], LineCandidates]
"""The lines that a shown number can mean now."""
NEARBY_LINES = 50
"""How far a line with the same tag is searched around its old place."""
SHOWN_LINES = 2
SHOWN_CHARS = 200
MAX_TOLD = 5


class WantedChange(msgspec.Struct, frozen=True):
    """Replace the lines `first` to `last`; without `last`, insert `text` after `first`."""

    first: LineRef
    last: LineRef | None
    text: str

    @property
    def refs(self) -> tuple[LineRef, ...]:
        """The lines that the change names, each once; none if it inserts at the top."""
        if self.last is None:
            return (self.first,) if self.first.number else ()
        return tuple(dict.fromkeys((self.first, self.last)))


class TaggedPlan(msgspec.Struct, frozen=True):
    """The plan, and the first and last line of each change."""

    plan: replace.Plan
    changes: list[NumberedChange]
    line_changes: list[LineChange]


class CopiedTag(Exception):
    """A new text starts a line with a number and tag as Read shows them.

    Attributes:
        change: The index of the change, from 0.
        ref: The number and tag.
    """

    def __init__(self, change: int, ref: LineRef) -> None:
        super().__init__(str(ref))
        self.change, self.ref = change, ref


def plan_tagged(
    content: bytes, path: str, wanted: list[WantedChange], meant_by: MeantBy
) -> TaggedPlan:
    """The plan of all changes.

    Raises:
        ToolFault: A line does not match its tag, or may be two lines.
        CopiedTag: A new text contains Read's line prefixes.
    """
    _refuse_notebook(content, path)
    with convert_file_faults(content, path):
        edits = NumberedEdits(content)
        _refuse_wrong(edits, wanted)
        for number, change in enumerate(wanted):
            _refuse_moved(edits, path, number, change, meant_by)
        changes = [
            _to_numbered_change(edits, number, change) for number, change in enumerate(wanted)
        ]
        try:
            edits.put(changes)
            changes.sort(key=lambda change: change.reach)
            line_changes = [_to_line_change(edits, change) for change in changes]
            return TaggedPlan(edits.plan(), changes, line_changes)
        except SharedLine as shared:
            raise ChangesOverlap(shared.one, shared.other, shared.line) from None
        except replace.SameText:
            raise LinesUnchanged from None


def _refuse_notebook(content: bytes, path: str) -> None:
    if not path.lower().endswith(".ipynb"):
        return
    from handaxe.text.notebook.document import NotANotebook, read_notebook

    try:
        read_notebook(content)
    except NotANotebook:
        # Read shows a broken one as text, so that it can be mended.
        return
    raise IsNotebook(path=path)


def _to_numbered_change(edits: NumberedEdits, number: int, change: WantedChange) -> NumberedChange:
    new = edits.lines_of(change.text)
    for line in new:
        ref = parse_shown_ref(line)
        if ref is not None and _is_tag_match(edits, ref):
            raise CopiedTag(number, ref)
    if change.last is None:
        return NumberedChange(change.first.number + 1, change.first.number, new)
    return NumberedChange(change.first.number, change.last.number, new)


def _to_line_change(edits: NumberedEdits, change: NumberedChange) -> LineChange:
    gone = tuple(map(edits.line, range(change.first, change.last + 1)))
    return LineChange(change.first, len(gone), len(change.new), gone)


def _is_tag_match(edits: NumberedEdits, ref: LineRef) -> bool:
    return edits.has(ref.number) and compute_tag(edits.line(ref.number)) == ref.tag


def _refuse_wrong(edits: NumberedEdits, wanted: list[WantedChange]) -> None:
    told: dict[LineRef, str] = {}
    wrong: list[dict[str, Any]] = []
    for number, change in enumerate(wanted):
        for ref in change.refs:
            if _is_tag_match(edits, ref):
                continue
            moved = _find_moved(edits, ref)
            there = edits.has(ref.number)
            found = str(make_line_ref(ref.number, edits.line(ref.number))) if there else None
            wrong.append(
                {
                    "change": number,
                    "given": str(ref),
                    "found": found,
                    "moved_to": str(moved) if moved else None,
                }
            )
            if len(told) < MAX_TOLD:
                told.setdefault(
                    ref, f"Change {number + 1}: {_describe_mismatch(edits, ref, moved)}"
                )
    if wrong:
        raise WrongLines(list(told.values()), wrong)


def _refuse_moved(
    edits: NumberedEdits, path: str, number: int, change: WantedChange, meant_by: MeantBy
) -> None:
    """Refuse a match that may be a coincidence: the line's number dates from before a change.

    For a range, both ends must match elsewhere.
    """
    doubts = [(ref, _find_other_meanings(edits, path, ref, meant_by)) for ref in change.refs]
    if doubts and all(others for _, others in doubts):
        ref, others = doubts[0]
        lines = sorted({line for line in others if line is not None})
        raise LinesMoved(number, str(ref), lines)


def _find_other_meanings(
    edits: NumberedEdits, path: str, ref: LineRef, meant_by: MeantBy
) -> list[int | None]:
    """Other current lines for this shown number and tag; None stands for a deleted line."""
    meanings = meant_by(ref.number)
    others: list[int | None] = []
    for meaning in meanings.lines:
        if meaning.line is None:
            is_same = meaning.gone == ref.tag
        else:
            is_same = _is_tag_match(edits, LineRef(meaning.line, ref.tag))
        if is_same and meaning.line != ref.number:
            others.append(meaning.line)
        if is_same and meaning.is_shown:
            # Whatever was shown so before that is not meant any more.
            return others
    if not meanings.is_complete:
        raise LinesNotShown(path=path, given=str(ref))
    return others


def _describe_mismatch(edits: NumberedEdits, ref: LineRef, moved: LineRef | None) -> str:
    if not edits.has(ref.number):
        count = edits.count_up_to(ref.number)
        what = f"there is no line {ref.number}; the file has {count:,}"
    elif not ref.tag:
        what = f"{ref} has no tag"
    else:
        what = f"line {ref.number} does not have the tag {ref.tag}"
    told = f"{what}. Current lines:\n{_format_around(edits, ref.number)}"
    if moved is not None:
        line = _format_lines(edits, moved.number, moved.number)
        told += f"\nThe only nearby line with that tag is {moved}:\n{line}"
    return told


def _find_moved(edits: NumberedEdits, ref: LineRef) -> LineRef | None:
    """The only nearby line that has the tag."""
    if not ref.tag:
        return None
    last = edits.count_up_to(ref.number + NEARBY_LINES)
    found = [
        near
        for near in range(max(1, ref.number - NEARBY_LINES), last + 1)
        if near != ref.number and compute_tag(edits.line(near)) == ref.tag
    ]
    return LineRef(found[0], ref.tag) if len(found) == 1 else None


def _format_around(edits: NumberedEdits, number: int) -> str:
    last = edits.count_up_to(number + SHOWN_LINES)
    if not last:
        return "(nothing: the file is empty)"
    return _format_lines(edits, max(1, min(number, last) - SHOWN_LINES), last)


def _format_lines(edits: NumberedEdits, first: int, last: int) -> str:
    whole = [edits.line(number) for number in range(first, last + 1)]
    return format_tagged_lines([line[:SHOWN_CHARS] for line in whole], first, whole=whole)
