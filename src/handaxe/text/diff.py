"""The changes between two texts, as hunks, as a unified diff, and in numbers.

The time is bounded: equal beginnings and ends are cut off before lines are compared. A middle that
repeats the same lines thousands of times is shown as one replaced block.
"""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Annotated, TypedDict

import msgspec

from handaxe.text.line_window import find_line_end, find_line_start, split_keeping_ends
from handaxe.text.replace.plan import Block, ByteSplice, Plan, align_blocks

NO_NEWLINE = "\\ No newline at end of file"
_MAX_PAIRS = 100_000
_UTF8_BOM = b"\xef\xbb\xbf"


class Hunk(msgspec.Struct, frozen=True, rename="camel"):
    """Changed lines with unchanged ones around them; each begins with a space, `-` or `+`."""

    old_start: int
    old_lines: int
    new_start: int
    new_lines: int
    lines: list[str]


class PatchHunk(TypedDict):
    """The hunk as data of a result."""

    oldStart: int
    oldLines: int
    newStart: int
    newLines: int
    lines: Annotated[list[str], "Each begins with a space, `-` or `+`."]


def to_patch(hunks: Sequence[Hunk]) -> list[PatchHunk]:
    """Hunks as data of a result."""
    return [
        {
            "oldStart": hunk.old_start,
            "oldLines": hunk.old_lines,
            "newStart": hunk.new_start,
            "newLines": hunk.new_lines,
            "lines": hunk.lines,
        }
        for hunk in hunks
    ]


class DiffStat(msgspec.Struct, frozen=True):
    """How many lines came and went."""

    additions: int
    deletions: int


def diff_texts(old: str, new: str, context: int = 3) -> list[Hunk]:
    """The changes from `old` to `new`."""
    line_break = "\n" if "\n" in old or "\n" in new else "\r"
    same = _count_common_prefix(old, new)
    head = find_line_start(old, same, 0, line_break)
    begin = find_line_start(old, same, context, line_break)
    tail = _count_common_suffix(old, new, head)
    old_end = find_line_end(old, len(old) - tail, context + 1, line_break)
    new_end = len(new) - (len(old) - old_end)
    skipped = old.count(line_break, 0, begin)
    return _compare(
        split_keeping_ends(old[begin:old_end], line_break),
        split_keeping_ends(new[begin:new_end], line_break),
        context,
        (skipped, skipped),
    )


def format_unified_diff(
    old: str, new: str, *, old_name: str = "old", new_name: str = "new", context: int = 3
) -> str:
    """The changes as a unified diff; empty where there are none."""
    hunks = diff_texts(old, new, context)
    return format_hunks(hunks, old_name=old_name, new_name=new_name)


def format_hunks(hunks: Sequence[Hunk], *, old_name: str = "old", new_name: str = "new") -> str:
    """Hunks as a unified diff; empty where there are none."""
    if not hunks:
        return ""
    # A name may hold a line break, which would begin a line of the diff.
    lines = [
        f"{sign} {name}".replace("\n", "\\n")
        for sign, name in (("---", old_name), ("+++", new_name))
    ]
    for hunk in hunks:
        old = _format_range(hunk.old_start, hunk.old_lines)
        new = _format_range(hunk.new_start, hunk.new_lines)
        lines += [f"@@ -{old} +{new} @@", *hunk.lines]
    return "\n".join(lines) + "\n"


def count_changes(hunks: Iterable[Hunk]) -> DiffStat:
    """The numbers of lines added and deleted."""
    signs = "".join("".join(map(itemgetter(0), hunk.lines)) for hunk in hunks)
    return DiffStat(additions=signs.count("+"), deletions=signs.count("-"))


def diff_plan(content: bytes, plan: Plan, context: int = 3) -> list[Hunk]:
    """The changes a plan makes, looking only at the lines around them."""
    if plan.encoding.startswith(("utf-16", "utf-32")):
        # A line feed byte may be half of another character here: compare the texts instead.
        before, after = (str(data, plan.encoding) for data in (content, plan.apply(content)))
        return diff_texts(before.removeprefix("\ufeff"), after.removeprefix("\ufeff"), context)
    line_break = b"\n" if b"\n" in content or any(b"\n" in s.data for s in plan.splices) else b"\r"
    hunks: list[Hunk] = []
    lines_before, shift, counted = 0, 0, 0
    for begin, end, splices in _find_regions(content, plan.splices, line_break, context):
        lines_before += content.count(line_break, counted, begin)
        counted = begin
        old = content[begin:end]
        new = _apply_splices(content, begin, end, splices)
        hunks += _compare(
            split_keeping_ends(_decode_part(old, plan, begin), line_break.decode()),
            split_keeping_ends(_decode_part(new, plan, begin), line_break.decode()),
            context,
            (lines_before, lines_before + shift),
        )
        shift += new.count(line_break) - old.count(line_break)
    return hunks


def _find_regions(
    content: bytes, splices: Sequence[ByteSplice], line_break: bytes, context: int
) -> Iterator[tuple[int, int, list[ByteSplice]]]:
    """Whole lines around splices; neighbours that touch are one region."""
    begin = end = -1
    inside: list[ByteSplice] = []
    for splice in splices:
        first = find_line_start(content, splice.start, context, line_break)
        if inside and first > end:
            yield begin, end, inside
            inside = []
        begin = begin if inside else first
        inside.append(splice)
        end = find_line_end(content, splice.end, context + 1, line_break)
    if inside:
        yield begin, end, inside


def _apply_splices(content: bytes, begin: int, end: int, splices: Iterable[ByteSplice]) -> bytes:
    parts: list[bytes] = []
    for splice in splices:
        parts += [content[begin : splice.start], splice.data]
        begin = splice.end
    return b"".join([*parts, content[begin:end]])


def _decode_part(data: bytes, plan: Plan, begin: int) -> str:
    return (data if begin else data.removeprefix(_UTF8_BOM)).decode(plan.encoding)


def _compare(old: list[str], new: list[str], context: int, skipped: tuple[int, int]) -> list[Hunk]:
    runs = list(align_blocks(old, new, max_pairs=_MAX_PAIRS))
    return [_build_hunk(group, old, new, skipped) for group in _group_blocks(runs, context)]


def _group_blocks(runs: list[Block], context: int) -> Iterator[list[Block]]:
    """Changed runs with up to `context` kept lines around them; close neighbours together."""
    group: list[Block] = []
    for index, run in enumerate(runs):
        length = run.old_end - run.old_begin
        if not run.kept:
            group.append(run)
            continue
        is_last = index == len(runs) - 1
        if group and (is_last or length > 2 * context):
            yield [*group, _cut(run, 0, min(context, length))]
            group = []
        if not is_last:
            group.append(_cut(run, max(0, length - context), length) if not group else run)
    if group:
        yield group


def _cut(run: Block, begin: int, end: int) -> Block:
    old, new = run.old_begin, run.new_begin
    return Block(old + begin, old + end, new + begin, new + end, kept=True)


def _build_hunk(
    group: list[Block], old: list[str], new: list[str], skipped: tuple[int, int]
) -> Hunk:
    first, last = group[0], group[-1]
    touched = old[first.old_begin : last.old_end] + new[first.new_begin : last.new_end]
    # One kind of ending all over says nothing; two kinds may be the very difference.
    keep_cr = len({line.endswith("\r\n") for line in touched if line.endswith("\n")}) > 1
    lines: list[str] = []
    for run in group:
        before, after = old[run.old_begin : run.old_end], new[run.new_begin : run.new_end]
        if run.kept:
            lines += _prefix_lines(" ", before, keep_cr=keep_cr)
        else:
            lines += _prefix_lines("-", before, keep_cr=keep_cr)
            lines += _prefix_lines("+", after, keep_cr=keep_cr)
    return Hunk(
        old_start=skipped[0] + first.old_begin + 1,
        old_lines=last.old_end - first.old_begin,
        new_start=skipped[1] + first.new_begin + 1,
        new_lines=last.new_end - first.new_begin,
        lines=lines,
    )


def _prefix_lines(sign: str, lines: Iterable[str], *, keep_cr: bool) -> Iterator[str]:
    for line in lines:
        yield sign + (line.rstrip("\n") if keep_cr else line.rstrip("\r\n"))
        if not line.endswith(("\n", "\r")):
            yield NO_NEWLINE


def _format_range(start: int, count: int) -> str:
    # In a unified diff a range without lines names the line before it.
    return f"{start if count else start - 1},{count}"


def _count_common_prefix(old: str, new: str) -> int:
    same, limit = 0, min(len(old), len(new))
    if old[:limit] == new[:limit]:
        return limit
    while limit - same > 1:
        middle = (same + limit) // 2
        if old[same:middle] == new[same:middle]:
            same = middle
        else:
            limit = middle
    return same


def _count_common_suffix(old: str, new: str, head: int) -> int:
    """How many characters both end with, not counting those before `head`."""
    same, limit = 0, min(len(old), len(new)) - head
    while limit > same:
        middle = (same + limit + 1) // 2
        if _tail(old, middle, same) == _tail(new, middle, same):
            same = middle
        else:
            limit = middle - 1
    return same


def _tail(text: str, begin: int, end: int) -> str:
    return text[len(text) - begin : len(text) - end]
