"""Whether the user wants short answers."""

from collections.abc import Callable

from handaxe.contract.events import BriefChanged


class BriefMode:
    """How long answers should be."""

    def __init__(self, announce: Callable[[BriefChanged], None] = lambda _: None) -> None:
        self.enabled = False
        self._announce = announce

    def switch(self, *, enabled: bool) -> bool:
        """Turn short answers on or off; whether that changed anything."""
        if enabled == self.enabled:
            return False
        self.enabled = enabled
        self._announce(BriefChanged(enabled=enabled))
        return True

    def replay(self, event: BriefChanged) -> None:
        """Take over what an earlier run of the session had announced."""
        self.enabled = event.enabled
