"""Shared by the file tools: path resolution, read-before-write checks, and diffs."""

import contextlib
import stat
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Diff, DiffHunk, Display
from handaxe.contract.faults import BadPath, ToolFault
from handaxe.contract.faults.file import CannotEncode, IsDirectory, NotFound, NotRegular
from handaxe.contract.ports.files import FileInfo, Files, FileVersion
from handaxe.contract.result import ToolResult
from handaxe.session.read_ledger import LineChange, ReadLedger, SeenFile
from handaxe.session.workdir import Workdir
from handaxe.text.diff import Hunk, diff_texts, format_hunks
from handaxe.text.encoding import Format, NotText, decode, encode, is_empty, sniff
from handaxe.text.encoding import UnencodableCharacter as NoBytes
from handaxe.text.replace import MatchedWith
from handaxe.tools.files.edit_faults import AlreadyThere, ChangedSinceRead, NotOpened, NotRead

MAX_SHOWN_BYTES = 100 * 1024
"""Files up to this size are part of the result; of larger ones only the changed lines."""
MAX_DIFFED_BYTES = 1024 * 1024
_ENDS_OF_DIRECTORIES = ("/", "/.", "/..")


async def resolve_file(spelled: str, ctx: ToolContext) -> str:
    """The absolute path of a file; a path that ends like a directory is a fault."""
    path = ctx[Workdir].resolve(spelled)
    if not spelled.endswith(_ENDS_OF_DIRECTORIES):
        return path
    info = await ctx[Files].look(path)
    if info is None or info.kind != "directory":
        raise BadPath(f"{spelled!r} ends like a directory path. Give the path of a file.")
    return path


async def find_regular_file(path: str, ctx: ToolContext) -> FileInfo | None:
    """The regular file at the path, None if the path is missing; a fault for anything else."""
    info = await ctx[Files].look(path)
    if info is None or info.kind == "file":
        return info
    if info.kind == "directory":
        raise IsDirectory(path=path)
    raise NotRegular(path=path, kind=info.kind)


async def add_near_names(missing: NotFound, path: str, ctx: ToolContext) -> ToolFault:
    """The fault with similar paths; unchanged where no such path is visible."""
    from handaxe.search.near_paths import find_near_paths

    found = await find_near_paths(path, ctx)
    if found.is_link:
        return NotFound(path, is_link=True)
    if not (found.near or found.elsewhere):
        return missing
    return NotFound(path, list(found.near), elsewhere=list(found.elsewhere))


async def refuse_unread_or_stale(path: str, info: FileInfo, ctx: ToolContext) -> SeenFile:
    """The version that the session read. Raises a fault if it is missing or outdated."""
    if not info.mode & stat.S_IWUSR and ctx[Settings].edit.perforce:
        raise NotOpened(path)
    ledger = ctx[ReadLedger]
    seen = ledger.find(info.path)
    if seen is None:
        raise NotRead(path=path)
    version = seen.version
    if (info.size_bytes, info.mtime_ns) != (version.size_bytes, version.mtime_ns):
        if (other := await _find_other_name(info, ctx)) is not None:
            return ledger.copy_entry(info.path, other)
        if info.size_bytes != version.size_bytes and info.size_bytes > MAX_DIFFED_BYTES:
            raise ChangedSinceRead(path, None)
        loaded = await ctx[Files].load(path)
        refuse_changed(path, loaded.data, loaded.version, seen, ctx)
    return seen


async def _find_other_name(info: FileInfo, ctx: ToolContext) -> str | None:
    """Another name (hard link) under which this session read the current content."""
    ledger = ctx[ReadLedger]
    for path in ledger.paths():
        seen = ledger.find(path)
        if seen is None or path == info.path:
            continue
        if (seen.version.size_bytes, seen.version.mtime_ns) != (info.size_bytes, info.mtime_ns):
            continue
        # It may be a place that this call must not look at.
        with contextlib.suppress(ToolFault):
            found = await ctx[Files].look(path)
            if found is not None and found.number == info.number:
                return path
    return None


def refuse_changed(
    path: str, data: bytes, version: FileVersion, seen: SeenFile, ctx: ToolContext
) -> None:
    """Raise a fault that shows the difference if the content changed since it was read."""
    if version.digest != seen.version.digest:
        before = ctx[ReadLedger].content(version.path)
        raise ChangedSinceRead(path, format_changes(before, data, path))


async def is_filled(path: str, size_bytes: int, ctx: ToolContext) -> bool:
    """Whether an existing file has any text."""
    # The longest byte order mark has four bytes; anything longer has text behind it.
    return size_bytes > 4 or not is_empty((await ctx[Files].load(path)).data)


async def fill_empty_file(path: str, make: Callable[[bytes], bytes], ctx: ToolContext) -> bool:
    """Create a missing file, or fill an empty one after its BOM, and return whether it existed."""
    expect: FileVersion | None = None
    mark = b""
    if (info := await find_regular_file(path, ctx)) is not None:
        if await is_filled(path, info.size_bytes, ctx):
            raise AlreadyThere(path=path)
        empty = await ctx[Files].load(path)
        expect, mark = empty.version, empty.data
    content = make(mark)
    version = await ctx[Files].replace(path, [content], expect=expect)
    ctx[ReadLedger].record_read(version, content=content)
    return expect is not None


def encode_after_mark(path: str, text: str, mark: bytes) -> bytes:
    """The content of a file that is empty except for a byte order mark."""
    stored = sniff(mark) if mark else Format()
    try:
        return encode(text, stored)
    except NoBytes as cannot:
        raise CannotEncode(path, cannot.encoding, cannot.character) from None


def describe_fuzzy_match(matched_with: MatchedWith) -> str:
    """Explain a match that was not exact."""
    if matched_with == "exact":
        return ""
    return (
        " old_string did not match exactly; the one place that differs only in "
        f"{matched_with.replace('_', ' ')} was replaced, in the file's own style."
    )


def format_changes(before: bytes | None, after: bytes, path: str) -> str | None:
    """A unified diff, if both contents are text and small enough."""
    hunks = compute_hunks(before, after)
    return format_hunks(hunks, old_name=path, new_name=path) if hunks else None


def compute_hunks(before: bytes | None, after: bytes) -> list[Hunk]:
    """The changed lines, if both contents are text and small enough."""
    if before is None or max(len(before), len(after)) > MAX_DIFFED_BYTES:
        return []
    try:
        return diff_texts(decode(before).text, decode(after).text)
    except NotText:
        return []


def decode_small_text(data: bytes) -> str | None:
    """The text of a small file, for the result's data; None for a large one."""
    if len(data) > MAX_SHOWN_BYTES:
        return None
    try:
        return decode(data).text
    except NotText:
        return None


def to_line_changes(hunks: Sequence[Hunk]) -> list[LineChange]:
    """The runs of changed lines, without unchanged lines around them."""
    changes: list[LineChange] = []
    for hunk in hunks:
        line, come, gone = hunk.old_start, 0, list[str]()
        for text in (*hunk.lines, " "):
            if text.startswith("-"):
                gone.append(text[1:].removesuffix("\r"))
            elif text.startswith("+"):
                come += 1
            elif text.startswith(" "):
                if gone or come:
                    changes.append(LineChange(line, len(gone), come, tuple(gone)))
                line, come, gone = line + len(gone) + 1, 0, []
    return changes


def to_diff_display(path: str, hunks: Sequence[Hunk]) -> Display:
    """Hunks as a diff block for display."""
    blocks = tuple(
        DiffHunk(h.old_start, h.old_lines, h.new_start, h.new_lines, tuple(h.lines)) for h in hunks
    )
    return (Diff(path, blocks),)


async def record_later_changes(path: str, ctx: ToolContext, result: ToolResult) -> ToolResult:
    """If a hook changed the file after the tool, record the new content and show the difference."""
    ledger = ctx[ReadLedger]
    info = await find_regular_file(path, ctx)
    seen = ledger.find(info.path) if info is not None else None
    if info is None or seen is None:
        return result
    loaded = await ctx[Files].load(path)
    if loaded.version.digest == seen.version.digest:
        return result
    known = ledger.content(info.path)
    hunks = await ctx[Files].compute(lambda: compute_hunks(known, loaded.data), len(loaded.data))
    changes = to_line_changes(hunks) if hunks else None
    ledger.record_read(loaded.version, content=loaded.data, changes=changes)
    text = f"{result.text}\n\nA hook changed the file afterwards"
    if hunks:
        text += f":\n{format_hunks(hunks, old_name=path, new_name=path)}"
    else:
        text += "; read it again before the next change."
    data: dict[str, Any] = {**result.data, "changedByHook": True}
    return msgspec.structs.replace(result, text=text, data=data)
