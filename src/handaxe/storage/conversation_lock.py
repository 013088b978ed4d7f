"""Which agent speaks in a session: one at a time, so that what they say is never interleaved."""

import os
import weakref
from pathlib import Path

from handaxe.contract.faults.session import SessionBusy
from handaxe.storage.session_lock import hash_offset, release_place, take_place


class ConversationLock:
    """The conversation of one session, in the hands of one agent while it runs."""

    def __init__(self, home: Path, session_id: str, *, shared: bool = False) -> None:
        """In a shared session agents of other processes count too."""
        self._home = home
        self._session_id = session_id
        self._place = hash_offset(session_id, "", "conversation")
        self._is_shared = shared
        self._is_held = False
        self._owner: weakref.ref[object] | None = None
        self._last: weakref.ref[object] | None = None
        self.was_taken = shared
        """Whether agents may have spoken since the session was opened."""

    def take(self, owner: object) -> bool:
        """Lock the conversation until `release`. Return whether others may have written to it.

        Raises:
            SessionBusy: another agent has it.
        """
        if self._owner is not None and self._owner() not in {None, owner}:
            raise SessionBusy(self._session_id, os.getpid(), os.getpid(), by_agent=True)
        if self._is_shared and not self._is_held:
            holder = take_place(self._home, self._place, shared=False)
            if holder is not None:
                raise SessionBusy(self._session_id, holder, os.getpid(), by_agent=True)
            self._is_held = True
        is_last = self._last is not None and self._last() is owner
        has_changed = self._is_shared or (self.was_taken and not is_last)
        self._owner = self._last = weakref.ref(owner)
        self.was_taken = True
        return has_changed

    def release(self, owner: object | None = None) -> None:
        """Let others have it, if it is in the owner's hands; None stands for any owner."""
        if self._owner is None or (owner is not None and self._owner() is not owner):
            return
        self._owner = None
        if self._is_held:
            self._is_held = False
            release_place(self._home, self._place)

    def __del__(self) -> None:
        self.release()
