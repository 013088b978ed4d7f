"""Faults of undo."""

from collections.abc import Sequence

import msgspec

from handaxe.contract.faults import TemplateFault, ToolFault

_SHOWN_PATHS = 50


class AmbiguousChange(msgspec.Struct, frozen=True, rename="camel"):
    """A path that changed during a call and that another program may have changed."""

    file_path: str
    call_id: str
    reason: str
    session_id: str = ""
    """The session that recorded the change as its own, if one did."""
    diff: str = ""


class NothingToUndo(ToolFault):
    """There is no change to undo."""

    code = "undo.nothing"

    def __init__(self, *, redo: bool = False, of_paths: bool = False, hint: str = "") -> None:
        """`of_paths`: others may be left, but none of the paths that were named."""
        named = " of these paths" if of_paths else ""
        what = f"No undo{named} is there to take back"
        if not redo:
            what = f"No change{named} is left to undo"
        super().__init__(f"{what} in this session.{hint and f' {hint}'}")


class UnknownCall(ToolFault):
    """No change was recorded under this id."""

    code = "undo.unknown_call"

    def __init__(self, call_id: str, known: Sequence[str], *, damage: Sequence[str] = ()) -> None:
        self.call_id, self.known = call_id, known
        latest = f" The latest calls that did: {', '.join(known)}." if known else ""
        lost = f" The undo record is damaged ({_summarize_damage(damage)})." if damage else ""
        super().__init__(
            f"No call {call_id!r} changed a file in this session.{latest}{lost} "
            "`handaxe history` lists all of them.",
            data={"call_id": call_id, "known": list(known)},
        )


class PrunedCall(
    TemplateFault,
    code="undo.pruned",
    sentence=(
        "The contents that the call {call_id!r} replaced are no longer saved: {why}. It cannot "
        "be undone. Nothing was changed."
    ),
    data={"call_id": "call_id"},
):
    """The saved contents of the call were deleted."""


class DamagedRecord(ToolFault):
    """The undo record is damaged, and the newest change may be missing."""

    code = "undo.damaged"

    def __init__(self, damage: Sequence[str], call_id: str | None = None, tool: str = "") -> None:
        """`call_id` is the newest call that can be read, of that tool."""
        instead = (
            "No other change is left to undo."
            if call_id is None
            else f"The newest change that can be read is the call {call_id!r} ({tool}); to undo "
            f"it, name it: `handaxe undo {call_id} --only`."
        )
        super().__init__(
            f"The undo record is damaged ({_summarize_damage(damage)}), "
            "so it may lack the last change. "
            f"Nothing was changed. {instead}",
            data={"call_id": call_id, "damage": list(damage)},
        )


class UndoConflict(ToolFault):
    """Another program changed a file since, and undo would lose that change."""

    code = "undo.conflict"

    def __init__(self, conflicts: Sequence[tuple[str, str, str]]) -> None:
        shown = "\n".join(
            f"{path}: {reason}." + (f"\n{diff}" if diff else "") for path, reason, diff in conflicts
        )
        super().__init__(
            "Undo would lose changes that the call did not make. Nothing was changed.\n"
            f"{shown}\nTo put the files back all the same, repeat the undo with force.",
            data={
                "conflicts": [
                    {"filePath": path, "reason": reason, "diff": diff}
                    for path, reason, diff in conflicts
                ]
            },
        )


class AmbiguousChanges(ToolFault):
    """Another program may have made every change that undo would restore."""

    code = "undo.ambiguous"

    def __init__(self, changes: Sequence[AmbiguousChange]) -> None:
        shown = "\n".join(
            f"{one.file_path}: {one.reason}." + (f"\n{one.diff}" if one.diff else "")
            for one in changes[:_SHOWN_PATHS]
        )
        more = len(changes) - _SHOWN_PATHS
        rest = f"\nand {more:,} more" if more > 0 else ""
        super().__init__(
            f"Nothing shows that {_list_calls(changes)} made these changes. Nothing was changed.\n"
            f"{shown}{rest}\nTo put files back all the same, name their paths, or repeat the undo "
            "with force.",
            data={"ambiguous": [msgspec.to_builtins(one) for one in changes]},
        )


def _list_calls(changes: Sequence[AmbiguousChange]) -> str:
    return ", ".join(dict.fromkeys(one.call_id for one in changes))


class UndoOutside(ToolFault):
    """Undo would restore files outside the project, and no user approved that."""

    code = "undo.outside"

    def __init__(self, paths: Sequence[str], *, is_sealed: bool) -> None:
        shown = "\n".join(paths[:_SHOWN_PATHS])
        more = f"\nand {len(paths) - _SHOWN_PATHS:,} more" if len(paths) > _SHOWN_PATHS else ""
        why = (
            "outside the project"
            if is_sealed
            else "outside the project or protected, by a record that is older than its key or was "
            "not written by you"
        )
        super().__init__(
            f"Undo would change files {why}. Nothing was changed.\n{shown}{more}\n"
            "If you want that, say so: `handaxe undo --outside`, with the same arguments.",
            data={"paths": list(paths), "sealed": is_sealed},
        )


class UntrustedRecord(
    TemplateFault,
    code="undo.untrusted",
    sentence=(
        "The undo record cannot be trusted: {problem}. Nothing was changed. If you know its "
        "contents, make the data directory private again (`chown`, `chmod go-w`)."
    ),
):
    """Other users could have written the undo record."""


class UndoFailed(ToolFault):
    """A file could not be restored."""

    code = "undo.failed"

    def __init__(
        self, path: str, reason: str, done: Sequence[str], *, applied: bool = False
    ) -> None:
        so_far = f"Already put back: {', '.join(done)}." if done else "Nothing was changed."
        failed = f"{path} could not be put back: {reason}. {so_far}"
        if applied:
            failed = f"{path} is as before, but may not outlast a power failure: {reason}."
            failed += f" {so_far}" if done else ""
        super().__init__(
            f"{failed} Remove the cause and undo again.",
            data={"filePath": path, "done": list(done)},
        )


class NotRecorded(
    TemplateFault,
    code="undo.not_recorded",
    sentence="The change was not made because it could not be recorded for undo: {reason}.",
):
    """The change was stopped because its undo record could not be written."""


def _summarize_damage(damage: Sequence[str]) -> str:
    more = f", and {len(damage) - 1:,} more" if len(damage) > 1 else ""
    return f"{damage[0]}{more}"
