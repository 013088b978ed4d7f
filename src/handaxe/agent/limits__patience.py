"""How often a run goes on although it could have ended."""

MAX_STOP_BLOCKS = 8
MAX_CONTINUATIONS = 3


class ContinuationBudget:
    """What one run has used of it."""

    def __init__(self) -> None:
        self.stop_blocks = 0
        self.was_broken = False
        """Whether the last answer broke off."""
        self._continuations = 0

    def may_go_on(self) -> bool:
        """Whether an answer that was cut off may be asked to go on; counts it."""
        self._continuations += 1
        return self._continuations <= MAX_CONTINUATIONS

    def use_stop_block(self) -> bool:
        """Whether a hook may keep the model working once more; counts it."""
        if self.stop_blocks >= MAX_STOP_BLOCKS:
            return False
        self.stop_blocks += 1
        return True
