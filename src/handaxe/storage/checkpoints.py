"""Remember files before they change: the hot end of the undo record.

One durable record ahead of each change, one more behind it that nobody waits for. Work on small
files is done where we stand; what has to be copied goes to a thread.
"""

import asyncio
import logging
import os
import time
from collections.abc import Collection

from handaxe.contract.effects import Effects
from handaxe.contract.ports.checkpoints import Checkpoints
from handaxe.contract.undo_faults import NotRecorded
from handaxe.disk.faults import DiskFault, in_plain_words
from handaxe.storage.undo.contents import ContentStore
from handaxe.storage.undo.journal import UndoJournal
from handaxe.storage.undo.records import After, Before, State
from handaxe.storage.undo.states import Keeper, Known, nothing_known
from handaxe.storage.undo.threads import in_thread
from handaxe.storage.undo.trees import TooBig, below, changes

IDLE_S = 5.0
_LARGE_BYTES = 1 << 20

_log = logging.getLogger("handaxe.storage")


class DiskCheckpoints(Checkpoints):
    """The journal of one session, fed call by call."""

    def __init__(
        self,
        journal: UndoJournal,
        store: ContentStore,
        *,
        known: Known = nothing_known,
        replacing: Collection[str] = (),
    ) -> None:
        """`replacing` names the tools that change files by a rename and in no other way."""
        self._journal = journal
        self._store = store
        self._keeper = Keeper(store, known)
        self._replacing = frozenset(replacing)
        # Undo puts back attributes as well, which only a look at the file itself tells.
        self._comparing = self._replacing - {"Undo"}
        self._open: dict[str, Before] = {}
        self._idle: asyncio.TimerHandle | None = None
        self._used = False

    async def before(self, call_id: str, tool: str, effects: Effects) -> None:
        """Make durable what the call may change; raising stops the call."""
        paths = [place.name for place in effects.writes if place.kind == "path"]
        if not paths:
            return

        def record() -> None:
            self._open[call_id] = self._record(call_id, tool, paths)

        try:
            if any(_is_slow(path, is_known=tool in self._comparing) for path in paths):
                await in_thread(record)
            else:
                record()
        except OSError as error:
            raise NotRecorded(in_plain_words(error)) from error
        except DiskFault as fault:
            raise NotRecorded(str(fault)) from fault

    async def after(self, call_id: str) -> None:
        """The call ended, well or badly: record what it left."""
        before = self._open.pop(call_id, None)
        if before is None:
            return
        is_known = before.tool in self._comparing
        try:
            if any(_is_slow(state.place, is_known=is_known) for state in before.states):
                await in_thread(lambda: self._finish(before))
            else:
                self._finish(before)
        except (OSError, DiskFault):
            # The change itself is made and undoable: whoever reads the journal looks again.
            _log.exception("what %s left could not be recorded", call_id)
        finally:
            self._journal.leave()
            self._rest_later()

    def close(self) -> None:
        """Make the journal durable and let go of it."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        self._journal.close()

    def _record(self, call_id: str, tool: str, paths: list[str]) -> Before:
        self._journal.enter()
        states: list[State] = []
        try:
            left_out = self._remember(paths, states, tool)
            record = Before(call_id, tool, time.time(), tuple(states), left_out)
            self._journal.append(record, durable=True)
        except BaseException:
            for state in states:
                self._store.release(state.kept)
            self._journal.leave()
            raise
        return record

    def _remember(self, paths: list[str], states: list[State], tool: str) -> tuple[str, ...]:
        """Collect the states of paths and of the trees below them; which trees were too big."""
        may_pin, trusting = tool in self._replacing, tool in self._comparing
        left_out: list[str] = []
        for path in paths:
            state = self._keeper.remember(path, may_pin=may_pin, trusting=trusting)
            states.append(state)
            if state.kind != "directory":
                continue
            try:
                inside = below(path)
            except TooBig:
                left_out.append(state.path)
                continue
            states += [
                self._keeper.remember(place, may_pin=False, trusting=False) for place in inside
            ]
        return tuple(left_out)

    def _finish(self, before: Before) -> None:
        found = {state.place: state for state in before.states}
        trusting = before.tool in self._comparing

        def look_at(place: str, state: State | None) -> State:
            return self._keeper.looked_at(place, state, trusting=trusting)

        changed = changes(found, before.left_out, look_at)
        self._journal.append(After(before.call_id, time.time(), tuple(changed)), durable=False)
        left = {state.place: state for state in changed}
        for place, state in found.items():
            self._store.settle(state, left.get(place))

    def _rest_later(self) -> None:
        """Close the file when it was not used for a while: idle sessions hold no descriptor."""
        self._used = True
        if self._idle is None:
            self._idle = asyncio.get_running_loop().call_later(IDLE_S, self._rest_if_idle)

    def _rest_if_idle(self) -> None:
        self._idle = None
        if self._used:
            self._rest_later()
            self._used = False
        else:
            self._journal.rest()


def _is_slow(path: str, *, is_known: bool) -> bool:
    """Whether a look at the path means reading or copying a lot."""
    try:
        info = os.lstat(path)
    except OSError:
        return False
    return info.st_size > _LARGE_BYTES and not (is_known and info.st_nlink == 1)
