"""Which trees were large a moment ago, so that nobody has to walk them again to find that out."""

import time

from handaxe.contract.ports.search import TextQuery

REMEMBERED_S = 60
MAX_REMEMBERED = 100


class Sizes:
    """What one session learned."""

    def __init__(self) -> None:
        self._noted: dict[tuple[object, ...], float] = {}

    def was_large(self, query: TextQuery) -> bool:
        """Whether the files this query asks for were many."""
        return time.monotonic() < self._noted.get(_asked(query), 0) + REMEMBERED_S

    def note_large(self, query: TextQuery) -> None:
        """Remember it for a while."""
        if len(self._noted) > MAX_REMEMBERED:
            self._noted.clear()
        self._noted[_asked(query)] = time.monotonic()


def _asked(query: TextQuery) -> tuple[object, ...]:
    return query.root, query.glob, query.file_type, query.respect_ignore, query.is_named
