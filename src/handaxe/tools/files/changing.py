"""The steps of every tool that changes a text where it stands: look, load what was read, write.

Not here: where the text has to change (`planning`), and what counts as read (`versions`).
"""

from collections.abc import Sequence

from handaxe.contract.context import ToolContext
from handaxe.contract.file_faults import NotFound, TooLarge
from handaxe.contract.ports.files import Files, FileVersion, Loaded
from handaxe.session.read_ledger import KEPT_FILE_BYTES, LineChange, ReadLedger
from handaxe.text.diff import Hunk, patch_of
from handaxe.text.replace import Plan
from handaxe.tools.files.faults import AlreadyThere
from handaxe.tools.files.missing import with_near_names
from handaxe.tools.files.versions import (
    existing_file,
    is_filled,
    line_changes,
    refuse_changed,
    refuse_unread_or_stale,
)

MAX_BYTES = 1 << 30


async def check_target(path: str, ctx: ToolContext, *, creates: bool) -> None:
    """Raise what can be known without matching anything.

    `creates`: there has to be no file, or an empty one.
    """
    info = await existing_file(path, ctx)
    if info is None:
        if not creates:
            raise await with_near_names(NotFound(path), path, ctx)
    elif info.size_bytes > MAX_BYTES:
        raise TooLarge(path, info.size_bytes, MAX_BYTES)
    elif not creates:
        await refuse_unread_or_stale(path, info, ctx)
    elif await is_filled(path, info.size_bytes, ctx):
        raise AlreadyThere(path)


async def load_as_read(path: str, ctx: ToolContext) -> Loaded:
    """The file, if it is the one that was read."""
    info = await existing_file(path, ctx)
    if info is None:
        raise NotFound(path)
    seen = await refuse_unread_or_stale(path, info, ctx)
    loaded = await ctx[Files].load(path, max_bytes=MAX_BYTES)
    refuse_changed(path, loaded.data, loaded.version, seen, ctx)
    return loaded


async def carry_out(
    path: str,
    loaded: Loaded,
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
    hunks = patch_of(loaded.data, plan)
    pieces = list(plan.pieces(loaded.data))
    version = await ctx[Files].replace(path, pieces, expect=loaded.version)
    content = b"".join(pieces) if version.size_bytes <= KEPT_FILE_BYTES else None
    changes = line_changes(hunks) if changes is None else changes
    ctx[ReadLedger].edited(version, changes, content=content, shown=shown)
    return version, hunks
