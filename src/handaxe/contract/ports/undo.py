"""The changes this session made: list them, say what putting them back would touch, do it."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import msgspec

from handaxe.contract.effects import Effects
from handaxe.contract.faults.undo import AmbiguousChange
from handaxe.contract.ports.files import FileVersion

ChangeKind = Literal["created", "modified", "deleted", "mode"]
"""The kinds of changes that a call makes to a path."""
PutBack = Literal["restored", "removed", "recreated", "mode restored", "already as before"]
"""How a path was restored."""


class UndoRequest(msgspec.Struct, frozen=True):
    """Which changes to put back."""

    call_id: str | None = None
    """This call and all later ones; None for the last change that still stands."""
    only: bool = False
    """This one call, leaving later ones."""
    redo: bool = False
    """Take back the last undo instead."""
    force: bool = False
    """Also restore files that were changed since, and ambiguous changes."""
    paths: tuple[str, ...] = ()
    """Only these real paths, also where they may not be the calls' own change; empty for all."""


class PathChange(msgspec.Struct, frozen=True, rename="camel"):
    """The change of one path by a call."""

    file_path: str
    change: ChangeKind
    diff: str = ""
    """Unified; empty where it was not asked for, or where it cannot be shown."""
    ambiguous: str = ""
    """Why it may not be the call's own change; empty where it is."""


class ChangedCall(msgspec.Struct, frozen=True, rename="camel"):
    """A call that changed files."""

    call_id: str
    tool: str
    at: float
    changes: tuple[PathChange, ...]
    undone: bool = False
    undoes: tuple[str, ...] = ()
    """The calls it took back, if it was an undo."""
    broken_off: bool = False
    """Whether it was an undo that did not come to its end; the next undo continues it."""
    cut_off: bool = False
    """Whether a crash ended it, so that what it left was found later."""
    pruned: bool = False
    """Whether what it replaced is no longer kept."""
    left_out: tuple[str, ...] = ()
    """Places where it may have changed something that cannot be put back."""


class RestoredPath(msgspec.Struct, frozen=True):
    """One path that was put back."""

    path: str
    action: PutBack
    before: bytes | None = None
    """Small content as the undo found it; None where there was none or it is large."""
    after: bytes | None = None
    """Small content as the undo left it."""
    replaced_digest: str = ""
    version: FileVersion | None = None
    """The file that is there now."""


class UndoResult(msgspec.Struct, frozen=True):
    """The result of an undo."""

    calls: tuple[ChangedCall, ...]
    """Newest first."""
    restored: tuple[RestoredPath, ...]
    notes: tuple[str, ...] = ()
    ambiguous: tuple[AmbiguousChange, ...] = ()
    """The paths that were left alone."""


class TouchedPath(msgspec.Struct, frozen=True):
    """A path that an undo is about to change."""

    path: str
    is_sealed: bool
    """Whether the record that says so carries the user's own seal."""


class ChangeHistory(ABC):
    """The record of every change, and the way back."""

    @abstractmethod
    def touched(self, wanted: UndoRequest) -> tuple[str, ...]:
        """The real paths that putting this back would change; a fault if it cannot be done."""

    @abstractmethod
    def preview_undo(self, wanted: UndoRequest, most: int) -> tuple[RestoredPath, ...]:
        """Predict the changes of an undo for the first `most` paths, without doing anything."""

    @abstractmethod
    async def put_back(self, call_id: str, wanted: UndoRequest) -> UndoResult:
        """Put it back, as a change made by `call_id`, which has its own record already."""

    @abstractmethod
    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""


TRACED = b"traced\0"
"""The first entry of a trace: from there on no write of the call is missed."""
TRACE_ENDED = b"\0"
"""The last one: no process of the call is left."""


class Checkpoints(ABC):
    """The journal that makes every change reversible."""

    async def prepare(self) -> None:  # noqa: B027 - not everybody has something to prepare
        """Calls that could change anything may come: what makes them wait may begin now."""

    async def find_loss(
        self,
        effects: Effects,  # noqa: ARG002 - of those who know nothing
        paths: Sequence[str],  # noqa: ARG002
    ) -> str:
        """Why the content of these absolute paths could not be restored after the call.

        A sentence for the permission question; empty if all of it could be restored.
        """
        return "Undo cannot tell whether this could be put back."

    def open_trace(self, call_id: str) -> int | None:  # noqa: ARG002 - of those who want none
        """A descriptor for the paths that the processes of a running call write; None: unwanted.

        `TRACED`, then paths that end with a NUL each, then `TRACE_ENDED`. Who asks has to close it.
        """
        return None

    @abstractmethod
    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Make durable what the call may change; raising stops the call."""

    @abstractmethod
    async def after(self, call_id: str) -> tuple[str, ...]:
        """The call ended, well or badly: record its changes; returns notes on them.

        It is called again when background work of the call ends.
        """
