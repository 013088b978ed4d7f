"""The undo record joined to one session: what its pipeline, its files and its tools need of it.

A session that changes nothing never loads it: everything here waits for the first use.
"""

import os
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handaxe.contract.effects import Effects
from handaxe.contract.ports.checkpoints import Checkpoints
from handaxe.contract.ports.undo import ChangedCall, ChangeHistory, Restored, Undone, Wanted
from handaxe.host.files import LocalFiles
from handaxe.session.read_ledger import ReadLedger
from handaxe.settings.model import Settings, UndoOptions
from handaxe.storage.home import session_directory
from handaxe.tools import BUILTIN

if TYPE_CHECKING:
    from handaxe.disk.overwrite import Intent
    from handaxe.storage.checkpoints import DiskCheckpoints
    from handaxe.storage.undo.contents import ContentStore
    from handaxe.storage.undo.history import JournalHistory, UndoGate
    from handaxe.storage.undo.journal import UndoJournal
    from handaxe.storage.undo.states import KnownFile
    from handaxe.storage.undo.tree_record import TreeRecord

REPLACING = (
    frozenset({"ApplyPatch", "Edit", "EditLines", "MultiEdit", "NotebookEdit", "Undo", "Write"})
    & BUILTIN.keys()
)
"""The tools that change files by a rename or take them away, and in no other way."""
WAITING = REPLACING - {"ApplyPatch", "Undo"}
"""Those of them that make one change, by `ChangeRecord.files`, and answer with what stops it."""
_OFF = "Changes are not recorded: the settings say `fileCheckpointingEnabled: false`."


class ChangeRecord(Checkpoints, ChangeHistory):
    """What makes the changes of one session reversible, and reverses them."""

    def __init__(
        self,
        home: Path,
        session_id: str,
        root: str,
        ledger: ReadLedger,
        *,
        roots: Callable[[], Sequence[str]] | None = None,
        settings: Callable[[], Settings] = Settings,
    ) -> None:
        self._home = home
        self._roots = roots or (lambda: (root,))
        self._settings = settings
        self._session_id = session_id
        self._root = root
        self._ledger = ledger
        self.stand_ins: Collection[str] = ()
        """Names of built-in tools in whose place others stand, of which nothing is known."""
        self.files = LocalFiles(
            journal=self._in_place, own_links=self._own_links, ahead=self._keep_promises
        )

    async def prepare(self) -> None:
        """Calls that could change anything may come: keep the roots in the background."""
        if self._is_on and self._options.shell_ahead:
            await self._checkpoints.prepare()

    async def find_loss(self, effects: Effects, paths: Sequence[str]) -> str:
        """Why what lies at and below these paths could not be put back; empty if it could."""
        if self._is_on:
            return await self._checkpoints.find_loss(effects, paths)
        is_there = any(map(os.path.lexists, paths)) and not effects.is_read_only
        return "Undo is switched off (fileCheckpointingEnabled: false)." if is_there else ""

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Make durable what the call may change; raising stops the call."""
        # What was recorded before can be put back, and that is on record, too.
        if self._is_on or tool == "Undo":
            await self._checkpoints.before(call_id, tool, effects)

    async def after(self, call_id: str) -> tuple[str, ...]:
        """The call ended, well or badly: record what it left; what there is to tell of it."""
        return await self._checkpoints.after(call_id) if self._has_begun else ()

    def touched(self, wanted: Wanted) -> tuple[str, ...]:
        """The real paths that putting this back would change; a fault if it cannot be done."""
        from handaxe.contract.undo_faults import NothingToUndo

        try:
            return self._history.touched(wanted)
        except NothingToUndo:
            if self._is_on:
                raise
            raise NothingToUndo(redo=wanted.redo, hint=_OFF) from None

    def outlook(self, wanted: Wanted, most: int) -> tuple[Restored, ...]:
        """What putting this back would do to the first `most` paths; nothing is done."""
        return self._history.outlook(wanted, most)

    async def put_back(
        self, call_id: str, wanted: Wanted, gate: "UndoGate | None" = None
    ) -> Undone:
        """Put it back, as a change made by `call_id`, which has its own record already.

        `gate` is told what is about to be changed, and stops it by a fault.
        """
        return await self._history.put_back(call_id, wanted, gate)

    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""
        return self._history.calls(diffs=diffs)

    def last_change_at(self, wanted: Wanted) -> float:
        """When the last of the changes was made that would be put back."""
        return self._history.last_change_at(wanted)

    def repair(self, *, resumed: bool) -> tuple[str, ...]:
        """Make whole what a crash left; what there is to tell."""
        told: tuple[str, ...] = ()
        if (self._home / "in-place").exists():
            from handaxe.storage.undo.in_place import repair_in_place

            told = repair_in_place(self._home)
        if resumed and (session_directory(self._home, self._session_id) / "journal.lock").exists():
            from handaxe.contract.undo_faults import UntrustedRecord

            try:
                self._journal.recover()
            except UntrustedRecord as fault:
                told = (*told, fault.sentence)
        return told

    async def close(self, options: UndoOptions | None = None) -> None:
        """Let go of the journal; once a day take the time to prune."""
        if not self._has_begun:
            if "_journal" in self.__dict__:
                self._journal.close()
            return
        from handaxe.storage.undo.pruning import prune_if_due
        from handaxe.storage.undo.threads import in_thread

        await in_thread(self._checkpoints.close)
        if options is not None:
            await in_thread(
                lambda: prune_if_due(
                    self._home,
                    max_bytes=options.max_bytes,
                    retention_days=options.retention_days,
                )
            )

    @cached_property
    def _store(self) -> "ContentStore":
        from handaxe.storage.undo.contents import ContentStore

        return ContentStore(self._home, self._session_id)

    @cached_property
    def _journal(self) -> "UndoJournal":
        from handaxe.storage.undo.journal import UndoJournal

        directory = session_directory(self._home, self._session_id)
        return UndoJournal(directory, self._store, session_id=self._session_id, root=self._root)

    @cached_property
    def _history(self) -> "JournalHistory":
        from handaxe.storage.undo.history import JournalHistory

        return JournalHistory(self._journal, self._store, in_place=self._in_place)

    @cached_property
    def _checkpoints(self) -> "DiskCheckpoints":
        from handaxe.storage.checkpoints import DiskCheckpoints

        return DiskCheckpoints(
            self._journal,
            self._store,
            known=self._known,
            replacing=REPLACING.difference(self.stand_ins),
            waiting=WAITING.difference(self.stand_ins),
            roots=self._roots,
            tree=self._tree if self._options.shell_max_files else None,
        )

    def _tree(self) -> "TreeRecord":
        from handaxe.host.sandbox.placeholders import is_held
        from handaxe.storage.tree_snapshots.snapshot import Limits
        from handaxe.storage.undo.keys import KEY_NAME
        from handaxe.storage.undo.tree_record import TreeRecord

        options = self._options
        limits = Limits(options.shell_max_files, options.shell_max_bytes)
        return TreeRecord(
            self._home,
            self._session_id,
            self._roots,
            limits,
            self._journal,
            self._store,
            is_passing=lambda path: is_held(path) or path.endswith(f"/{KEY_NAME}"),
        )

    def _in_place(self, intent: "Intent") -> AbstractContextManager[object]:
        from handaxe.storage.undo.in_place import SharedContentGuard

        return SharedContentGuard(self._home, self._store)(intent)

    @property
    def _options(self) -> UndoOptions:
        return self._settings().undo

    @property
    def _is_on(self) -> bool:
        """Whether changes are recorded."""
        return self._settings().file_checkpointing_enabled

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
