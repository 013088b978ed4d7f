"""Repairs after killed processes, made before a session reads its settings."""

import os
from pathlib import Path

import msgspec

from handaxe.storage.home import get_session_directory


class RecoveryReport(msgspec.Struct, frozen=True):
    """Notices about repairs, one sentence each."""

    by_commands: tuple[str, ...] = ()
    """Protected files that sandboxed commands changed; for the next command's result."""
    warnings: tuple[str, ...] = ()


def recover_project(home: Path, root: str, session_id: str | None) -> RecoveryReport:
    """Repair what killed processes left, within a time limit.

    A resumed session is repaired completely.
    """
    by_commands = _recover_protected_places(home / "sandbox")
    return RecoveryReport(by_commands, recover_changes(home, root, session_id))


def recover_changes(home: Path, root: str, session_id: str | None) -> tuple[str, ...]:
    """Finish or remove changes of killed processes and return notices about them."""
    warnings = _repair_files(home)
    if _list_names(home / "open-journals"):
        from handaxe.undo.journal_recovery import recover_killed

        warnings += recover_killed(home, root)
    if session_id and (get_session_directory(home, session_id) / "journal.lock").exists():
        from handaxe.undo.journal_recovery import recover_session

        warnings += recover_session(home, session_id)
    return tuple(dict.fromkeys(warnings))


def _recover_protected_places(ledger: Path) -> tuple[str, ...]:
    if not any(name.startswith("before-") for name in _list_names(ledger)):
        return ()
    from handaxe.shell.sandbox.protected_files import recover

    return recover(str(ledger))


def _repair_files(home: Path) -> tuple[str, ...]:
    if not (home / "in-place").exists():
        return ()
    from handaxe.undo.in_place import repair_in_place

    return repair_in_place(home)


def _list_names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []
