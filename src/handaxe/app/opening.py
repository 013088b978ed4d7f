"""Everything that opens with a session, in the order it is opened."""

from handaxe.app.companions import Companion, Surroundings
from handaxe.app.memory import Memory
from handaxe.storage.sessions import History


class Companions:
    """The companions of one session."""

    def __init__(self, around: Surroundings, history: History) -> None:
        self.memory = Memory(around, history)
        self.all: tuple[Companion, ...] = (self.memory,)

    async def close(self) -> None:
        """End them, the last opened first."""
        for companion in reversed(self.all):
            await companion.close()
