"""Why a change cannot be put back; raised by whoever keeps the record of changes."""

from collections.abc import Sequence

import msgspec

from handaxe.contract.faults import ToolFault

_SHOWN_PATHS = 50


class AmbiguousChange(msgspec.Struct, frozen=True, rename="camel"):
    """A path that changed while a call ran and was left alone, as it may be somebody else's."""

    file_path: str
    call_id: str
    reason: str
    session_id: str = ""
    """The session that recorded the change as its own, if one did."""
    diff: str = ""


class NothingToUndo(ToolFault):
    """No change is left that could be put back."""

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


class PrunedCall(ToolFault):
    """The call is known, but what it replaced is no longer kept."""

    code = "undo.pruned"

    def __init__(self, call_id: str, why: str) -> None:
        super().__init__(
            f"What the call {call_id!r} replaced is no longer kept: {why}. It cannot be undone; "
            "nothing was changed.",
            data={"call_id": call_id},
        )


class DamagedRecord(ToolFault):
    """The record of the newest change may be among what cannot be read."""

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
    """Somebody else changed a file since, and that would be lost."""

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
    """Everything that would be put back may be somebody else's change."""

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
    """Files elsewhere would be put back, and nobody said yes to that."""

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


class UntrustedRecord(ToolFault):
    """The record lies where other users could have written it."""

    code = "undo.untrusted"

    def __init__(self, problem: str) -> None:
        super().__init__(
            f"The undo record is not believed: {problem}. Nothing was changed. Give the data "
            "directory back to its owner alone (`chown`, `chmod go-w`) if you know what is in it."
        )


class UndoFailed(ToolFault):
    """The system refused to put a file back."""

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


class NotRecorded(ToolFault):
    """A change was stopped, because the record that makes it reversible could not be written."""

    code = "undo.not_recorded"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"The change was not made, because it could not be made undoable first: {reason}."
        )


def _summarize_damage(damage: Sequence[str]) -> str:
    more = f", and {len(damage) - 1:,} more" if len(damage) > 1 else ""
    return f"{damage[0]}{more}"
