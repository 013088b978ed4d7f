"""The changes this session made: list them, say what putting them back would touch, do it."""

from abc import ABC, abstractmethod
from typing import Literal

import msgspec

from handaxe.contract.ports.files import FileVersion

ChangeKind = Literal["created", "modified", "deleted", "mode"]
"""What a call did to a path."""
PutBack = Literal["restored", "removed", "recreated", "mode restored", "already as before"]
"""What was done to a path to put it back."""


class UndoRequest(msgspec.Struct, frozen=True):
    """Which changes to put back."""

    call_id: str | None = None
    """This call and all later ones; None for the last change that still stands."""
    only: bool = False
    """This one call, leaving later ones."""
    redo: bool = False
    """Take back the last undo instead."""
    force: bool = False
    """Even where somebody else changed a file since, and what may not be the calls' own change."""
    paths: tuple[str, ...] = ()
    """Only these real paths, also where they may not be the calls' own change; empty for all."""


class PathChange(msgspec.Struct, frozen=True, rename="camel"):
    """What a call did to one path."""

    file_path: str
    change: ChangeKind
    diff: str = ""
    """Unified; empty where it was not asked for, or where it cannot be shown."""
    ambiguous: str = ""
    """Why it may not be the call's own change; empty where it is."""


class AmbiguousChange(msgspec.Struct, frozen=True, rename="camel"):
    """A path that changed while a call ran and was left alone, as it may be somebody else's."""

    file_path: str
    call_id: str
    reason: str
    session_id: str = ""
    """The session that recorded the change as its own, if one did."""
    diff: str = ""


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
    """The file that now stands there."""


class UndoResult(msgspec.Struct, frozen=True):
    """What an undo did."""

    calls: tuple[ChangedCall, ...]
    """Newest first."""
    restored: tuple[RestoredPath, ...]
    notes: tuple[str, ...] = ()
    ambiguous: tuple[AmbiguousChange, ...] = ()
    """What was left alone."""


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
        """What putting this back would do to the first `most` paths; nothing is done."""

    @abstractmethod
    async def put_back(self, call_id: str, wanted: UndoRequest) -> UndoResult:
        """Put it back, as a change made by `call_id`, which has its own record already."""

    @abstractmethod
    def calls(self, *, diffs: bool = False) -> list[ChangedCall]:
        """Every call that changed something, oldest first."""
