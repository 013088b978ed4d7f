"""Connects the undo record to one session: its pipeline, its files and its tools.

A session without changes never loads it; everything waits for the first use.
"""

import asyncio
import os
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handaxe.config.settings import Settings, UndoOptions
from handaxe.contract.effects import Effects
from handaxe.contract.ports.undo import (
    ChangedCall,
    ChangeHistory,
    Checkpoints,
    RestoredPath,
    UndoRequest,
    UndoResult,
)
from handaxe.disk.local_files import LocalFiles
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.storage.home import get_session_directory
from handaxe.text.escape import format_count

if TYPE_CHECKING:
    from handaxe.config.project import Configuration
    from handaxe.disk.overwrite import Intent
    from handaxe.disk.threads import Unfinished
    from handaxe.undo.checkpoints import DiskCheckpoints
    from handaxe.undo.command_changes import TreeTracker
    from handaxe.undo.content_store import ContentStore
    from handaxe.undo.history import JournalHistory, UndoGate
    from handaxe.undo.journal import UndoJournal
    from handaxe.undo.path_state import KnownFile
    from handaxe.undo.prune import PruneResult

REPLACING = frozenset(
    {"ApplyPatch", "Edit", "EditLines", "MultiEdit", "NotebookEdit", "Undo", "Write"}
)
"""Tools that change files only by renaming or removing them."""
WAITING = REPLACING - {"ApplyPatch", "Undo"}
"""Tools that make one change through `ChangeTracker.files` and return its faults."""
_MEASURED_PARTS = 16
"""After adding this share of the budget, a session measures the total size."""
_OFF = "Changes are not recorded: the settings say `fileCheckpointingEnabled: false`."


class ChangeTracker(Checkpoints, ChangeHistory):
    """Records the changes of one session, and undoes them."""

    def __init__(
        self,
        home: Path,
        session_id: str,
        workdir: Workdir,
        ledger: ReadLedger,
        configuration: "Configuration | None" = None,
    ) -> None:
        """Without a configuration, the default settings apply."""
        self._home = home
        self._workdir = workdir
        self._configuration = configuration
        self._session_id = session_id
        self._root = workdir.root
        self._ledger = ledger
        self._pruned: list[str] = []
        self._measured_bytes = 0
        self._pruning = asyncio.Lock()
        self.stand_ins: Collection[str] = ()
        """Names of built-in tools that are replaced by own tools with unknown effects."""
        self._unfinished: Unfinished = []
        self.files = LocalFiles(
            journal=self._in_place, own_links=self._own_links, ahead=self._keep_promises,
            unfinished=self._unfinished,
        )  # fmt: skip

    async def prepare(self) -> None:
        """Save the roots in the background, because calls with unknown effects may come."""
        if self._is_on and self._settings.undo.shell_ahead:
            await self._checkpoints.prepare()

    async def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Why undo could not restore these paths and everything below; empty if it could."""
        if self._is_on:
            return await self._checkpoints.find_loss(effects, paths)
        is_there = any(map(os.path.lexists, paths)) and not effects.is_read_only
        return "Undo is turned off (fileCheckpointingEnabled: false)." if is_there else ""

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Record durably what the call may change; a fault stops the call."""
        # What was recorded before can be put back, and that is on record, too.
        if self._is_on or tool == "Undo":
            if self._pruning.locked():
                # The journal is locked meanwhile, and waiting for that would block all callers.
                async with self._pruning:
                    pass
            await self._checkpoints.before(call_id, tool, effects)

    def open_trace(self, call_id: str) -> int | None:
        """The trace file for the processes of a running call; None for no trace."""
        if not self._has_begun or not self._settings.undo.trace_commands:
            return None
        return self._checkpoints.open_trace(call_id)

    async def after(self, call_id: str) -> tuple[str, ...]:
        """Record what an ended call left, on success or failure; return notes."""
        if not self._has_begun:
            return ()
        return (*await self._checkpoints.after(call_id), *await self._prune_if_full(call_id))

    def touched(self, wanted: UndoRequest) -> tuple[str, ...]:
        """The real paths that the undo would change; a fault if it is not possible."""
        from handaxe.contract.faults.undo import NothingToUndo

        try:
            return self._history.touched(wanted)
        except NothingToUndo:
            if self._is_on:
                raise
            raise NothingToUndo(redo=wanted.redo, hint=_OFF) from None

    def preview_undo(self, wanted: UndoRequest, most: int) -> tuple[RestoredPath, ...]:
        """The effect of the undo on the first `most` paths, without changes."""
        return self._history.preview_undo(wanted, most)

    async def put_back(
        self, call_id: str, wanted: UndoRequest, gate: "UndoGate | None" = None
    ) -> UndoResult:
        """Undo, as a change made by `call_id`, which already has its own record.

        `gate` gets the paths before the change and can stop it with a fault.
        """
        return await self._history.put_back(call_id, wanted, gate)

    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""
        return self._history.calls(diffs=diffs)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Lost parts of the record, for the user."""
        return (*self.damage, *self._pruned)

    @property
    def damage(self) -> tuple[str, ...]:
        """Damaged places in the parts of the record that were read, for the user."""
        journal = self.__dict__.get("_journal")
        return journal.warnings if journal is not None else ()

    def last_change_at(self, wanted: UndoRequest) -> float:
        """The time of the newest change that would be undone."""
        return self._history.last_change_at(wanted)

    async def close(self, options: UndoOptions | None = None) -> None:
        """Close the journal; prune once a day."""
        if "_journal" not in self.__dict__ and not self._has_begun:
            return
        from handaxe.disk.threads import run_in_thread
        from handaxe.undo.prune import prune_if_due

        if not self._has_begun:
            await run_in_thread(self._journal.close)
            return
        await self._checkpoints.slow.settle()
        await run_in_thread(self._checkpoints.close)
        if options is not None:
            pruned = await run_in_thread(
                lambda: prune_if_due(
                    self._home,
                    max_bytes=options.max_bytes,
                    retention_days=options.retention_days,
                )
            )
            self._tell_pruned(pruned, options)

    async def _prune_if_full(self, call_id: str) -> tuple[str, ...]:
        """Keep the budget while the session works; return notes."""
        options, recorded = self._settings.undo, self._store.recorded_bytes
        if recorded - self._measured_bytes <= options.max_bytes // _MEASURED_PARTS:
            return ()
        self._measured_bytes = recorded
        from handaxe.disk.threads import run_in_thread
        from handaxe.undo.prune import prune_if_full

        async with self._pruning:
            pruned = await run_in_thread(
                lambda: prune_if_full(
                    self._home,
                    max_bytes=options.max_bytes,
                    retention_days=options.retention_days,
                    spared=call_id,
                )
            )
        return self._tell_pruned(pruned, options)

    def _tell_pruned(self, pruned: "PruneResult | None", options: UndoOptions) -> tuple[str, ...]:
        """A note about dropped calls of the last day; older ones are dropped silently."""
        if pruned is None or not pruned.young_calls:
            return ()
        lost = format_count(pruned.young_calls, "call")
        told = (
            f"The undo record is full (undo.max_bytes: {options.max_bytes:,}), so its "
            f"oldest calls were dropped. {lost} of the last day can no longer be "
            "undone; `handaxe history` lists them."
        )
        self._pruned.append(told)
        return (told,)

    @cached_property
    def _store(self) -> "ContentStore":
        from handaxe.undo.content_store import ContentStore

        return ContentStore(self._home, self._session_id)

    @cached_property
    def _journal(self) -> "UndoJournal":
        from handaxe.undo.journal import UndoJournal

        directory = get_session_directory(self._home, self._session_id)
        return UndoJournal(directory, self._store, session_id=self._session_id, root=self._root)

    @property
    def _history(self) -> "JournalHistory":
        """The history, after recording what could not be recorded before."""
        if self._has_begun:
            self._checkpoints.write_again()
        return self._known_history

    @cached_property
    def _known_history(self) -> "JournalHistory":
        from handaxe.undo.history import JournalHistory

        return JournalHistory(self._journal, self._store, in_place=self._in_place)

    @cached_property
    def _checkpoints(self) -> "DiskCheckpoints":
        from handaxe.undo.checkpoints import DiskCheckpoints

        return DiskCheckpoints(
            self._journal,
            self._store,
            known=self._known,
            replacing=REPLACING.difference(self.stand_ins),
            waiting=WAITING.difference(self.stand_ins),
            roots=lambda: self._workdir.roots,
            tree=self._tree if self._settings.undo.shell_max_files else None,
            unfinished=self._unfinished,
        )

    def _tree(self) -> "TreeTracker":
        from handaxe.shell.sandbox.mount_points import is_held
        from handaxe.undo.command_changes import TreeTracker
        from handaxe.undo.journal_files.record_key import KEY_NAME
        from handaxe.undo.snapshot.snapshot import SnapshotLimits

        options = self._settings.undo
        limits = SnapshotLimits(options.shell_max_files, options.shell_max_bytes)
        return TreeTracker(
            self._home,
            self._session_id,
            lambda: self._workdir.roots,
            limits,
            self._journal,
            self._store,
            is_passing=lambda path: is_held(path) or path.endswith(f"/{KEY_NAME}"),
        )

    def _in_place(self, intent: "Intent") -> AbstractContextManager[object]:
        from handaxe.undo.in_place import SharedContentGuard

        return SharedContentGuard(self._home, self._store)(intent)

    @property
    def _settings(self) -> Settings:
        return Settings() if self._configuration is None else self._configuration.settings

    @property
    def _is_on(self) -> bool:
        """Whether changes are recorded."""
        return self._settings.file_checkpointing_enabled

    @property
    def _has_begun(self) -> bool:
        return "_checkpoints" in self.__dict__

    def _keep_promises(self) -> None:
        if self._has_begun:
            self._checkpoints.keep_promises()

    def _own_links(self, dev: int, ino: int) -> int:
        return self._store.own_links(dev, ino)

    def _known(self, path: str) -> "KnownFile | None":
        seen = self._ledger.find(path)
        return None if seen is None else (seen.version, self._ledger.content(path))
