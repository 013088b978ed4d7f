"""State of own tools: one object per type and session, saved after each call that changes it."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from handaxe.contract.events import StateChanged
from handaxe.contract.tool import State

MAX_CHARS = 1_000_000
"""A longer state is not saved, and the call that made it so long fails."""

Snapshot = dict[type[State], bytes]


class OwnState:
    """The state objects of one session, its agents included."""

    def __init__(
        self, announce: Callable[[StateChanged], object], saved: Mapping[str, Any]
    ) -> None:
        """`saved` is what an earlier run of the session left, by the names of the types."""
        self._announce = announce
        self._earlier = saved
        self._objects: dict[type[State], State] = {}
        self._saved: Snapshot = {}
        self.problems: list[str] = []
        """Sentences on state that could not be taken over."""

    def open(self, states: Iterable[type[State]]) -> dict[type[Any], Any]:
        """The objects of these types; missing ones are made."""
        return {kind: self._objects.get(kind) or self._make(kind) for kind in states}

    def snapshot(self, states: Iterable[type[State]]) -> Snapshot:
        """The current content of these objects."""
        return {kind: msgspec.json.encode(state) for kind, state in self.open(states).items()}

    def restore(self, snapshot: Snapshot) -> None:
        """Restore their previous content; the objects stay the same."""
        for kind, encoded in snapshot.items():
            state, before = self._objects[kind], msgspec.json.decode(encoded, type=kind)
            for name in kind.__struct_fields__:
                setattr(state, name, getattr(before, name))

    def save(self, states: Iterable[type[State]], call_id: str) -> list[Any]:
        """Announce the changed values and return them.

        Raises:
            TypeError, ValueError: it cannot be saved, or not be read again.
        """
        changed: list[StateChanged] = []
        encodings: Snapshot = {}
        for kind, encoded in self.snapshot(states).items():
            if encoded == self._saved.get(kind):
                continue
            if len(encoded) > MAX_CHARS:
                raise ValueError(
                    f"The state {kind.__name__} has {len(encoded):,} characters; "
                    f"{MAX_CHARS:,} are kept at most"
                )
            msgspec.json.decode(encoded, type=kind)
            encodings[kind] = encoded
            value = msgspec.json.decode(encoded)
            changed.append(StateChanged(call_id=call_id, name=_get_name(kind), value=value))
        self._saved |= encodings
        for event in changed:
            self._announce(event)
        return [event.value for event in changed]

    def _make(self, kind: type[State]) -> State:
        saved = self._earlier.get(_get_name(kind))
        state = kind()
        if saved is not None:
            try:
                state = msgspec.convert(saved, kind)
            except msgspec.ValidationError as error:
                self.problems.append(
                    f"The saved state {kind.__name__} of an earlier run does not fit its type "
                    f"any more ({error}). The state starts with its defaults."
                )
        self._objects[kind] = state
        self._saved[kind] = msgspec.json.encode(state)
        return state


def _get_name(kind: type[State]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
