"""The steps of every tool that changes a text where it stands: look, load what was read, write.

Not here: where the text has to change (`planning`), and what counts as read (`versions`).
"""

from collections.abc import Sequence

from handaxe.contract.context import ToolContext
from handaxe.contract.faults.file import FileTooLarge, NotFound
from handaxe.contract.ports.files import Files, FileVersion, LoadedFile
from handaxe.session.read_ledger import KEPT_FILE_BYTES, LineChange, ReadLedger
from handaxe.text.diff import Hunk, diff_plan
from handaxe.text.replace import Plan
from handaxe.tools.files.edit_faults import AlreadyThere
from handaxe.tools.files.freshness import (
    find_regular_file,
    is_filled,
    refuse_changed,
    refuse_unread_or_stale,
    to_line_changes,
)
from handaxe.tools.files.target_file import add_near_names

MAX_BYTES = 1 << 30


async def check_target(path: str, ctx: ToolContext, *, creates: bool) -> None:
    """Raise what can be known without matching anything.

    `creates`: there has to be no file, or an empty one.
    """
    info = await find_regular_file(path, ctx)
    if info is None:
        if not creates:
            raise await add_near_names(NotFound(path), path, ctx)
    elif info.size_bytes > MAX_BYTES:
        raise FileTooLarge(path, info.size_bytes, MAX_BYTES)
    elif not creates:
        await refuse_unread_or_stale(path, info, ctx)
    elif await is_filled(path, info.size_bytes, ctx):
        raise AlreadyThere(path)


async def load_as_read(path: str, ctx: ToolContext) -> LoadedFile:
    """The file, if it is the one that was read."""
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
    """Write what a plan makes of the file; what was known of the file stays known.

    `changes` are the lines that were named, where a difference could only guess them among equal
    ones; `shown` are the new ones whose tags are told.
    """
    hunks = diff_plan(loaded.data, plan)
    pieces = list(plan.pieces(loaded.data))
    version = await ctx[Files].replace(path, pieces, expect=loaded.version)
    content = b"".join(pieces) if version.size_bytes <= KEPT_FILE_BYTES else None
    changes = to_line_changes(hunks) if changes is None else changes
    ctx[ReadLedger].record_edit(version, changes, content=content, shown=shown)
    return version, hunks
