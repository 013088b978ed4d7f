"""How often a run may go on although it could have ended."""

MAX_CONTINUATIONS = 3


class Patience:
    """How often a run went on although it could have ended."""

    def __init__(self) -> None:
        self.stop_blocks = 0
        self.was_broken = False
        self._continuations = 0

    def may_go_on(self) -> bool:
        """Count one more continuation; whether it is allowed."""
        self._continuations += 1
        return self._continuations <= MAX_CONTINUATIONS
