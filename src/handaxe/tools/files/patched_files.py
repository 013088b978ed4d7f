"""Apply a patch to files: plan all of them, then write them one by one.

If one cannot be written, the files written before it are restored.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.file import FileTooLarge, NotFound, NotRegular
from handaxe.contract.ports.files import FileInfo, Files, FileVersion, LoadedFile
from handaxe.session.read_ledger import KEPT_FILE_BYTES, ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text.diff import Hunk, diff_plan
from handaxe.text.replace import MatchedWith
from handaxe.text.replace.patch_format import FilePatch
from handaxe.tools.files.edit_faults import InTheWay, NamedTwice, PatchBroken
from handaxe.tools.files.edit_plan import MAX_BYTES, HunkPlanner, load_as_read
from handaxe.tools.files.freshness import (
    add_near_names,
    find_regular_file,
    is_filled,
    refuse_unread_or_stale,
    resolve_file,
    to_line_changes,
)

Action = Literal["updated", "added", "deleted", "moved"]


class PatchedFile(msgspec.Struct, frozen=True, kw_only=True):
    """The planned content of one file."""

    path: str
    action: Action
    before: LoadedFile | None
    """None for a new file."""
    mode: int | None = None
    pieces: Sequence[bytes | memoryview] | None
    """The new content; None for a deleted file."""
    hunks: list[Hunk] = []
    matched_with: MatchedWith = "exact"
    moved_from: str | None = None


async def check_patches(patches: Iterable[FilePatch], ctx: ToolContext) -> None:
    """Check what needs no matching."""
    real: set[str] = set()
    for patch in patches:
        for spelled in (patch.path, *((patch.move_to,) if patch.move_to else ())):
            path = await resolve_file(spelled, ctx)
            info = await find_regular_file(path, ctx)
            where = info.path if info is not None else path
            if where in real:
                raise NamedTwice(path=path)
            real.add(where)
            is_new = patch.kind == "add" or spelled is patch.move_to
            try:
                await _check_one(patch, path, info, is_new=is_new, ctx=ctx)
            except ToolFault as fault:
                raise fault.at(spelled, file=path) from None


async def _check_one(
    patch: FilePatch, path: str, info: FileInfo | None, *, is_new: bool, ctx: ToolContext
) -> None:
    if is_new:
        if info is not None and (
            patch.kind != "add" or await is_filled(path, info.size_bytes, ctx)
        ):
            raise InTheWay(path=path)
        return
    if info is None:
        raise await add_near_names(NotFound(path), path, ctx)
    if info.size_bytes > MAX_BYTES:
        raise FileTooLarge(path=path, size_bytes=info.size_bytes, limit_bytes=MAX_BYTES)
    if (patch.kind == "delete" or patch.move_to) and await _is_link(path, info, ctx):
        raise NotRegular(path=path, kind="symbolic link")
    await refuse_unread_or_stale(path, info, ctx)


async def _is_link(path: str, info: FileInfo, ctx: ToolContext) -> bool:
    """Whether the path itself is a link, not only a directory above it."""
    directory, _, name = path.rpartition("/")
    parent = await ctx[Files].look(directory or "/")
    return parent is None or info.path != f"{parent.path.rstrip('/')}/{name}"


async def plan_patches(patches: Iterable[FilePatch], ctx: ToolContext) -> list[PatchedFile]:
    """The plan for every file; one fault lists every hunk that does not match."""
    planned: list[PatchedFile] = []
    faults: list[ToolFault] = []
    for patch in patches:
        path = ctx[Workdir].resolve(patch.path)
        try:
            if patch.kind == "add":
                planned.append(await _plan_add(path, patch, ctx))
            elif patch.kind == "delete":
                loaded = await load_as_read(path, ctx)
                mode = await _read_mode(path, ctx)
                planned.append(
                    PatchedFile(path=path, action="deleted", before=loaded, mode=mode, pieces=None)
                )
            else:
                planned += await _plan_update(path, patch, faults, ctx)
        except ToolFault as fault:
            faults.append(fault.at(patch.path, file=path))
    if faults:
        raise _join_faults(faults)
    return planned


async def _plan_add(path: str, patch: FilePatch, ctx: ToolContext) -> PatchedFile:
    before = None
    if (info := await find_regular_file(path, ctx)) is not None:
        if await is_filled(path, info.size_bytes, ctx):
            raise InTheWay(path=path)
        before = await ctx[Files].load(path)
    return PatchedFile(path=path, action="added", before=before, pieces=[patch.content.encode()])


async def _read_mode(path: str, ctx: ToolContext) -> int | None:
    info = await ctx[Files].look(path)
    return info.mode if info is not None else None


async def _plan_update(
    path: str, patch: FilePatch, faults: list[ToolFault], ctx: ToolContext
) -> list[PatchedFile]:
    """The file with its hunks applied; hunks that do not match are collected in `faults`."""
    loaded = await load_as_read(path, ctx)
    updated = PatchedFile(path=path, action="updated", before=loaded, pieces=[loaded.data])
    if patch.hunks:
        planned = await ctx[Files].compute(
            lambda: _plan_hunks(updated, loaded.data, patch, faults, ctx), len(loaded.data)
        )
        if planned is None:
            return []
        updated = planned
    return [updated] if patch.move_to is None else await _plan_move(updated, patch.move_to, ctx)


def _plan_hunks(
    updated: PatchedFile,
    content: bytes,
    patch: FilePatch,
    faults: list[ToolFault],
    ctx: ToolContext,
) -> PatchedFile | None:
    planner = HunkPlanner(content, updated.path, ctx)
    failed = False
    for number, hunk in enumerate(patch.hunks, 1):
        try:
            planner.add(hunk)
        except ToolFault as fault:
            failed = True
            place = f"{patch.path}, hunk {number} of {len(patch.hunks)}"
            faults.append(fault.at(place, file=updated.path, hunk=number - 1))
    if failed:
        return None
    made = planner.plan()
    return msgspec.structs.replace(
        updated,
        pieces=list(made.pieces(content)),
        hunks=diff_plan(content, made),
        matched_with=made.matched_with,
    )


async def _plan_move(updated: PatchedFile, move_to: str, ctx: ToolContext) -> list[PatchedFile]:
    target = ctx[Workdir].resolve(move_to)
    if await find_regular_file(target, ctx) is not None:
        raise InTheWay(path=target)
    mode = await _read_mode(updated.path, ctx)
    arrived = msgspec.structs.replace(
        updated, path=target, action="moved", before=None, mode=mode, moved_from=updated.path
    )
    gone = msgspec.structs.replace(updated, action="deleted", mode=mode, pieces=None, hunks=[])
    return [arrived, gone]


def _join_faults(faults: list[ToolFault]) -> ToolFault:
    first, *others = faults
    if others:
        listed = [{"code": fault.code, "text": fault.sentence, **fault.data} for fault in faults]
        first.sentence = "\n\n".join(fault.sentence for fault in faults)
        first.data = {**first.data, "failures": listed}
    first.sentence += "\n\nNothing of the patch was applied."
    return first


async def write_patches(planned: Sequence[PatchedFile], ctx: ToolContext) -> None:
    """Write all files; on failure restore those that were written."""
    written: list[tuple[PatchedFile, FileVersion | None]] = []
    for patched in planned:
        try:
            written.append((patched, await _write_one(patched, ctx)))
        except ToolFault as fault:
            restored, left = await _put_back(written, ctx)
            raise PatchBroken(fault, patched.path, restored, left) from None
        except BaseException:
            await _put_back(written, ctx)
            raise
    for patched, version in written:
        _tell(patched, version, ctx[ReadLedger])


async def _write_one(patched: PatchedFile, ctx: ToolContext) -> FileVersion | None:
    files, before = ctx[Files], patched.before
    expect = before.version if before is not None else None
    if patched.pieces is not None:
        mode = patched.mode if before is None else None
        return await files.replace(patched.path, patched.pieces, expect=expect, mode=mode)
    assert expect is not None
    await files.remove(patched.path, expect=expect)
    return None


async def _put_back(
    written: Sequence[tuple[PatchedFile, FileVersion | None]], ctx: ToolContext
) -> tuple[list[str], list[str]]:
    """Restore the written files, last first; return those restored and those not."""
    restored: list[str] = []
    left: list[str] = []
    for patched, version in reversed(written):
        try:
            if patched.before is not None:
                mode = patched.mode if version is None else None
                await ctx[Files].replace(
                    patched.path, [patched.before.data], expect=version, mode=mode
                )
            elif version is not None:
                await ctx[Files].remove(patched.path, expect=version)
        except ToolFault:
            left.append(patched.path)
        else:
            restored.append(patched.path)
    return restored, left


def _is_known_whole(path: str | None, ledger: ReadLedger) -> bool:
    seen = ledger.find(path) if path is not None else None
    return seen is not None and seen.is_whole


def _tell(patched: PatchedFile, version: FileVersion | None, ledger: ReadLedger) -> None:
    """Record the written content if the session knew the previous content."""
    before, pieces = patched.before, patched.pieces
    if version is None or pieces is None:
        if before is not None:
            ledger.forget(before.version.path)
        return
    size = sum(map(len, pieces))
    content = b"".join(pieces) if size <= KEPT_FILE_BYTES else None
    if patched.action == "updated":
        ledger.record_edit(version, to_line_changes(patched.hunks), content=content)
    elif patched.action == "added" or _is_known_whole(patched.moved_from, ledger):
        ledger.record_read(version, content=content)
