"""Tells the model that its user put files back: by `/undo`, `handaxe undo` or a program."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from handaxe.contract.events import Event
from handaxe.text.framing import quote_line
from handaxe.undo.journal_files.records__layout import JOURNAL_NAME

if TYPE_CHECKING:
    from handaxe.undo.journal_files.ended_calls__owner_undos import OwnerUndo, OwnerUndos

_SHOWN_PATHS = 50
_SHOWN_CALLS = 5


class UndoReminders:
    """What one conversation hears of the undos of its owner, each once."""

    def __init__(self, directory: Path, said: Sequence[Event]) -> None:
        """`directory` is the session's; `said` is the conversation so far, which knows of older."""
        self._directory = directory
        self._since = said[-1].at if said else time.time()
        self._undos: OwnerUndos | None = None

    def __call__(self) -> tuple[str, ...]:
        """A text for every undo since the last time."""
        if self._undos is None:
            if not (self._directory / JOURNAL_NAME).exists():
                return ()
            # Who changes nothing never loads it.
            from handaxe.undo.journal_files.ended_calls__owner_undos import OwnerUndos

            self._undos = OwnerUndos(self._directory, self._since)
        return tuple(map(_describe, self._undos.take()))


def _describe(undo: "OwnerUndo") -> str:
    calls = ", ".join(map(quote_line, undo.calls[:_SHOWN_CALLS]))
    more_calls = len(undo.calls) - _SHOWN_CALLS
    calls += f" and {more_calls} more" if more_calls > 0 else ""
    listed = "\n".join(f"- {quote_line(path)}" for path in undo.paths[:_SHOWN_PATHS])
    more = len(undo.paths) - _SHOWN_PATHS
    rest = f"\n... and {more:,} more" if more > 0 else ""
    return (
        f"The user took back changes by undo or redo ({calls}). These files are no longer as you "
        "left or last saw them. Read them again before you rely on them, and do not make the same "
        f"changes again unless the user asks for that:\n{listed}{rest}"
    )
