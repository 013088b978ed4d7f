"""Undo by the owner of a session: a program that holds it, or a user afterwards."""

import contextlib
import os
import time
from collections import ChainMap
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from handaxe.app.services.crash_recovery import recover_changes
from handaxe.catalog.catalog import Catalog
from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.contract.events import Event, SessionClosed
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.undo import NothingToUndo, UndoOutside, UntrustedRecord
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.permission import Asker
from handaxe.contract.ports.undo import (
    ChangedCall,
    ChangeHistory,
    RestoredPath,
    TouchedPath,
    UndoRequest,
    UndoResult,
)
from handaxe.contract.result import ToolResult
from handaxe.disk.errors import DiskFault
from handaxe.hooks.service import Hooks
from handaxe.permission.policy import make_policy
from handaxe.permission.protected_paths import find_protected_name
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.pipeline import ToolPipeline
from handaxe.pipeline.scheduler import Scheduler
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.storage.event_log import EventLog
from handaxe.storage.event_recorder import append_log_problem
from handaxe.storage.home import generate_session_id, get_session_directory, get_sessions_directory
from handaxe.storage.result_store import DiskResultStore
from handaxe.storage.sessions import LOG_NAME, read_history, read_session_root
from handaxe.text.paths import is_inside, quote_path, unquote_path
from handaxe.text.redact import Redactor
from handaxe.tools import build_loaders
from handaxe.undo.journal import read_journal_root, refuse_shared
from handaxe.undo.journal_files.records import find_newest_record, list_journal_files
from handaxe.undo.tracker import ChangeTracker

if TYPE_CHECKING:
    from handaxe.undo.history import UndoGate


class HostUndo:
    """Undo by the program or user that owns the session; it needs no approval."""

    def __init__(
        self,
        context: PipelineContext,
        record: ChangeTracker,
        gate: "UndoGate | None" = None,
        order: Scheduler | None = None,
    ) -> None:
        """`order` is the call order of the session, if it has one."""
        gate = gate or make_undo_gate(context.workdir.roots, trusts_seals=True)
        undo_only = Catalog(
            {"Undo": build_loaders()["Undo"]}, selected=("Undo",), ports=context.ports.keys()
        )
        # Permission rules restrict the model, not the owner.
        policy = make_policy(roots=context.workdir.roots, home=context.workdir.home)
        self._pipeline = ToolPipeline(
            msgspec.structs.replace(
                context,
                catalog=undo_only,
                ports=ChainMap({ChangeHistory: _GatedHistory(record, gate)}, context.ports),
                policy=lambda: policy,
                asker=_OwnerApproval(),
            ),
            max_parallel=1,
            recall=lambda _: None,
            order=order,
        )

    async def undo(self, call_id: str, wanted: UndoRequest) -> ToolResult:
        """Undo as a call of this id."""
        paths = tuple(map(_quote_argument, wanted.paths))
        args = msgspec.to_builtins(msgspec.structs.replace(wanted, paths=paths))
        return await self._pipeline.call(ToolCall(call_id, "Undo", args))


class _GatedHistory(ChangeHistory):
    """An undo record that stops if the owner must be asked first."""

    def __init__(self, record: ChangeTracker, gate: "UndoGate") -> None:
        self._record = record
        self._gate = gate

    def touched(self, wanted: UndoRequest) -> tuple[str, ...]:
        """The method of the record."""
        return self._record.touched(wanted)

    def preview_undo(self, wanted: UndoRequest, most: int) -> tuple[RestoredPath, ...]:
        """The method of the record."""
        return self._record.preview_undo(wanted, most)

    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """The method of the record."""
        return self._record.calls(diffs=diffs)

    async def put_back(self, call_id: str, wanted: UndoRequest) -> UndoResult:
        """Restore a path if the gate allows it."""
        return await self._record.put_back(call_id, wanted, self._gate)


def _quote_argument(path: str) -> str:
    """A path as JSON text."""
    return quote_path(path) if unquote_path(path) is None else path


def make_undo_gate(
    roots: Sequence[str], *, trusts_seals: bool, agreed: Collection[str] | None = ()
) -> "UndoGate":
    """Stops an undo of paths that need confirmation, unless they are agreed to; None: all are.

    These are paths outside the roots, and protected ones whose record has no seal. With
    `trusts_seals` only unsealed records need confirmation.
    """

    def check(touched: Sequence[TouchedPath]) -> None:
        asked = [
            one
            for one in touched
            if not (one.is_sealed and trusts_seals)
            and (
                not _is_within(one.path, roots)
                or (not one.is_sealed and find_protected_name(one.path) is not None)
            )
        ]
        paths = tuple(dict.fromkeys(quote_path(one.path) for one in asked))
        if agreed is not None and not set(paths).issubset(agreed):
            raise UndoOutside(paths, is_sealed=all(one.is_sealed for one in asked))

    return check


def _is_within(path: str, roots: Sequence[str]) -> bool:
    """Whether a path is in a root after resolving symlinks."""
    above, name = os.path.split(path)
    real = os.path.normpath(f"{os.path.realpath(above)}/{name}")
    return any(is_inside(real, os.path.realpath(root)) for root in roots)


class _OwnerApproval(Asker):
    looks = False

    async def ask(self, request: PermissionRequest) -> Allow:  # noqa: ARG002 - always the same
        """The owner requested it."""
        return Allow("requested by the owner of the session", "user")


class PastSession:
    """The changes of a session on disk, while it runs or afterwards."""

    def __init__(
        self, home: Path, session_id: str, root: str, *, believed_root: str | None = None
    ) -> None:
        """`believed_root` is the project if the record's own root cannot be trusted."""
        self._believed_root = believed_root or root
        self.session_id = session_id
        directory = get_session_directory(home, session_id)
        self._log_path = directory / LOG_NAME
        redactor = Redactor(os.environ, is_file=os.path.lexists)
        self._log = EventLog(self._log_path, redactor=redactor)
        ledger = ReadLedger(self._emit)
        recover_changes(home, root, session_id)
        workdir = Workdir((root,), home=os.path.expanduser("~"))  # noqa: PTH111
        self._record = ChangeTracker(home, session_id, workdir, ledger)
        policy = make_policy(roots=(root,), home=workdir.home)
        ports: dict[type[Any], Any] = {
            Files: self._record.files,
            ReadLedger: ledger,
            Workdir: workdir,
            ChangeHistory: self._record,
        }
        self._context = PipelineContext(
            session_id=session_id,
            catalog=Catalog({}, selected=(), ports=()),
            ports=ports,
            workdir=workdir,
            files=self._record.files,
            policy=lambda: policy,
            hooks=Hooks(None),
            emit=self._emit,
            results=DiskResultStore(directory / "results", retention_days=30, redactor=redactor),
            redactor=redactor,
            checkpoints=self._record,
        )

    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""
        return self._record.calls(diffs=diffs)

    def find_damage(self) -> tuple[str, ...]:
        """The damage of the record, one sentence each."""
        return self._record.damage

    def has_call(self, call_id: str) -> bool:
        """Whether the record has a change of this call."""
        return any(call.call_id == call_id for call in self.calls())

    def last_change_at(self, wanted: UndoRequest) -> float | None:
        """The time of the change that would be undone, or None."""
        try:
            return self._record.last_change_at(wanted)
        except NothingToUndo:
            return None

    async def undo(self, wanted: UndoRequest, *, agreed: Collection[str] | None = ()) -> ToolResult:
        """Undo; outside the project only agreed paths, None for all."""
        was_closed = read_history(self._log_path).is_closed
        gate = make_undo_gate((self._believed_root,), trusts_seals=False, agreed=agreed)
        try:
            undoing = HostUndo(self._context, self._record, gate)
            result = await undoing.undo(f"undo_{generate_session_id()[:12]}", wanted)
        finally:
            if was_closed:
                self._emit(SessionClosed())
            try:
                await self._record.close()
            finally:
                with contextlib.suppress(DiskFault, OSError):
                    await self._log.close()
        return (
            result if self._log.problem is None else append_log_problem(result, self._log.problem)
        )

    def _emit(self, event: Event) -> None:
        # As in a session, a log that cannot be written stops no call; the result says so.
        with contextlib.suppress(DiskFault, OSError):
            self._log.append(msgspec.structs.replace(event, at=time.time()))


def find_past_sessions(
    home: Path, *, root: str | os.PathLike[str], session_id: str | None = None
) -> list[PastSession]:
    """The sessions with changes in the project at `root`, or the named one.

    Last used first, and never empty.
    """
    here = os.path.realpath(root)
    if session_id is not None:
        record = find_newest_record(get_session_directory(home, session_id))
        if record is None:
            raise SetupError(f"The session {session_id!r} does not exist or changed no file.")
        return [_open(home, record, here)]
    newest = filter(None, map(find_newest_record, get_sessions_directory(home).glob("*/")))
    found: list[PastSession] = []
    for journal in sorted(newest, key=lambda path: path.stat().st_mtime, reverse=True):
        project, _ = _find_root(home, journal)
        if project is not None and is_inside(here, project):
            found.append(_open(home, journal, here))
    if not found:
        raise SetupError(f"No session has changed a file in {here} yet.")
    return found


def _open(home: Path, journal: Path, here: str) -> PastSession:
    try:
        for part in list_journal_files(journal.parent):
            refuse_shared(part)
    except UntrustedRecord as fault:
        raise SetupError(fault.sentence) from None
    project, is_sealed = _find_root(home, journal)
    believed = project if is_sealed else here
    return PastSession(home, journal.parent.name, project or here, believed_root=believed)


def _find_root(home: Path, journal: Path) -> tuple[str | None, bool]:
    """The project of a journal, even if its start is damaged, and whether it is sealed."""
    found, is_sealed = read_journal_root(journal, home)
    return found or read_session_root(journal.parent / LOG_NAME), is_sealed


def choose_session_to_undo(sessions: Sequence[PastSession], wanted: UndoRequest) -> PastSession:
    """The session of the named call, or of the last change."""
    if wanted.call_id is not None:
        having = (session for session in sessions if session.has_call(wanted.call_id))
        return next(having, sessions[0])
    latest = [(at, session) for session in sessions if (at := session.last_change_at(wanted))]
    return max(latest, key=lambda item: item[0])[1] if latest else sessions[0]
