"""Replacements this session has made or failed to make, so that a repeated one is recognised."""

from collections.abc import Callable
from hashlib import sha256

from handaxe.contract.events import EditApplied

REMEMBERED = 10_000


class AppliedEdits:
    """Which old text was replaced by which new text, in which file."""

    def __init__(self, announce: Callable[[EditApplied], object] = lambda _: None) -> None:
        self._made: dict[tuple[str, str], None] = {}
        self._missed: dict[tuple[str, str], set[str]] = {}
        self._announce = announce

    def add(self, path: str, old: str, new: str) -> None:
        """Remember a replacement."""
        event = EditApplied(path=path, fingerprint=_hash_edit(old, new))
        self.replay(event)
        self._announce(event)

    def has(self, path: str, old: str, new: str) -> bool:
        """Whether this very replacement was made here."""
        return (path, _hash_edit(old, new)) in self._made

    def count_miss(self, path: str, old: str, call_id: str) -> int:
        """How many calls, with this one, have looked for this text here without finding it."""
        key = (path, _hash_edit(old, ""))
        calls = self._missed.setdefault(key, set())
        calls.add(call_id)
        if len(self._missed) > REMEMBERED:
            del self._missed[next(iter(self._missed))]
        return len(calls)

    def replay(self, event: EditApplied) -> None:
        """Take over what an earlier run of the session had announced."""
        self._made[event.path, event.fingerprint] = None
        if len(self._made) > REMEMBERED:
            del self._made[next(iter(self._made))]


def _hash_edit(old: str, new: str) -> str:
    return sha256(f"{len(old)}\0{old}{new}".encode(errors="surrogatepass")).hexdigest()[:32]
