"""Undo: restore what earlier calls changed."""

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Items, Text
from handaxe.contract.effects import Effects
from handaxe.contract.faults.undo import AmbiguousChange
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.undo import (
    ChangeHistory,
    PutBack,
    RestoredPath,
    UndoRequest,
    UndoResult,
)
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.text.diff import Hunk, PatchHunk, count_changes, to_patch
from handaxe.text.paths import quote_path
from handaxe.tools.files.freshness import (
    compute_hunks,
    decode_small_text,
    to_diff_display,
    to_line_changes,
)

UNTOUCHED = "already as before"
SHOWN_FILES = 50
"""Number of files listed in a permission prompt."""


class UndoArgs(ToolArgs):
    call_id: Annotated[str | None, "Go back to before this call."] = None
    only: Annotated[bool, "Only this call, not later ones."] = False
    redo: Annotated[bool, "Revert the last undo."] = False
    force: Annotated[bool, "Also overwrite later changes by others."] = False
    paths: Annotated[list[str] | None, "Only these paths, whichever session changed them."] = None


class RestoredFileData(TypedDict):
    """One path that was restored."""

    filePath: str
    action: PutBack
    structuredPatch: list[PatchHunk]
    originalFile: Annotated[
        str | None, "The previous content; null if the path was missing or is too large."
    ]


class AmbiguousChangeData(TypedDict):
    """A path that was not restored, because the change may come from another session."""

    filePath: str
    callId: str
    reason: str
    sessionId: Annotated[str, "The session that recorded the change as its own, if any."]
    diff: str


class UndoData(TypedDict):
    """The result of Undo."""

    filePath: Annotated[str | None, "The first of the files."]
    structuredPatch: Annotated[list[PatchHunk], "What changed in the first of the files."]
    calls: Annotated[list[str], "The ids of the undone calls."]
    redo: bool
    files: list[RestoredFileData]
    ambiguous: list[AmbiguousChangeData]


class Undo(Tool[UndoArgs]):
    """Restores files to an earlier state."""

    search_hint = "put back, revert, roll back changes, redo"
    output_type = UndoData
    uses = (ChangeHistory, ReadLedger, Workdir)
    # Which files it touches is known only when the calls before it have ended.
    effects = Effects(reads_everything=True, writes_everything=True)
    defer = True

    def subjects(self, args: UndoArgs) -> tuple[Subject, ...]:
        return ()

    async def situate(
        self, args: UndoArgs, ctx: ToolContext
    ) -> tuple[Effects, tuple[Subject, ...]]:
        paths = ctx[ChangeHistory].touched(_parse_wanted(args, ctx))
        return Effects.on(*paths), tuple(PathSubject(path, "write") for path in paths)

    async def preview(self, args: UndoArgs, ctx: ToolContext) -> Display | None:
        history, wanted = ctx[ChangeHistory], _parse_wanted(args, ctx)
        files = [_File(restored) for restored in history.preview_undo(wanted, SHOWN_FILES)]
        more = len(history.touched(wanted)) - SHOWN_FILES
        lines = [f"would be {file.line()}" for file in files] + (
            [f"and {more:,} more"] if more > 0 else []
        )
        return (Items(tuple(lines)), *(_display(files) or ()))

    async def call(self, args: UndoArgs, ctx: ToolContext) -> ToolResult:
        undone = await ctx[ChangeHistory].put_back(ctx.call_id, _parse_wanted(args, ctx))
        files = [_File(restored) for restored in undone.restored]
        for file in files:
            file.tell(ctx[ReadLedger])
        return ToolResult(
            _format_text(undone, files, redo=args.redo),
            data=_to_data(undone, files, redo=args.redo),
            display=_display(files, undone.ambiguous),
            notes=undone.notes,
        )

    def title(self, partial_input: dict[str, Any]) -> str:
        verb = "redo" if partial_input.get("redo") else "undo"
        return f"Undo({partial_input.get('call_id') or verb})"


class _File:
    """One restored path, with the changed lines."""

    def __init__(self, restored: RestoredPath) -> None:
        self.path = restored.path
        self.action: PutBack = restored.action
        self.restored = restored
        before, after = restored.before, restored.after
        self.hunks: list[Hunk] = []
        if restored.action == "restored":
            self.hunks = compute_hunks(before, after or b"")

    def tell(self, ledger: ReadLedger) -> None:
        """Update the ledgers of readers that see the difference; all others must read again."""
        if self.action in {UNTOUCHED, "mode restored"}:
            return
        seen = ledger.find(self.path)
        version = self.restored.version
        knew = seen is not None and seen.version.digest == self.restored.replaced_digest
        if knew and version is not None and self.hunks:
            ledger.record_edit(version, to_line_changes(self.hunks), content=self.restored.after)
        else:
            ledger.forget(self.path)

    def line(self) -> str:
        """Describe the change in one line."""
        counts = count_changes(self.hunks)
        lines = f" (+{counts.additions} -{counts.deletions} lines)" if self.hunks else ""
        return f"{self.action}: {quote_path(self.path)}{lines}"


def _parse_wanted(args: UndoArgs, ctx: ToolContext) -> UndoRequest:
    paths = tuple(map(ctx[Workdir].resolve, args.paths or ()))
    return UndoRequest(args.call_id, only=args.only, redo=args.redo, force=args.force, paths=paths)


def _format_text(undone: UndoResult, files: Sequence[_File], *, redo: bool) -> str:
    calls = undone.calls
    named = ", ".join(f"{call.tool} {call.call_id}" for call in calls[:5])
    more = f" and {len(calls) - 5} more" if len(calls) > 5 else ""
    verb = "Reverted the undo" if redo else "Undid"
    lines = [file.line() for file in files]
    alone = [f"ambiguous, not restored: {one.file_path} ({one.reason})" for one in undone.ambiguous]
    return "\n".join([f"{verb}: {named}{more}.", *lines, *alone])


def _to_data(undone: UndoResult, files: Sequence[_File], *, redo: bool) -> UndoData:
    listed: list[RestoredFileData] = [
        {
            "filePath": file.path,
            "action": file.action,
            "structuredPatch": to_patch(file.hunks),
            "originalFile": None
            if file.restored.before is None
            else decode_small_text(file.restored.before),
        }
        for file in files
    ]
    return {
        "filePath": listed[0]["filePath"] if listed else None,
        "structuredPatch": listed[0]["structuredPatch"] if listed else [],
        "calls": [call.call_id for call in undone.calls],
        "redo": redo,
        "files": listed,
        "ambiguous": [msgspec.to_builtins(one) for one in undone.ambiguous],
    }


def _display(files: Sequence[_File], ambiguous: Sequence[AmbiguousChange] = ()) -> Display | None:
    shown = tuple(
        block for file in files if file.hunks for block in to_diff_display(file.path, file.hunks)
    )
    alone = tuple(Text(one.diff, "muted") for one in ambiguous if one.diff)
    return (*shown, *alone) or None
