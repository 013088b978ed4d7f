"""The requests of a skill for the rest of a turn: another model, another effort."""

from collections.abc import Callable

from handaxe.contract.events import BriefChanged


class TurnOverrides:
    """Passes overrides on to the agent, until the turn is over."""

    def __init__(
        self,
        hear: Callable[[str | None, str | None, str], None],
        effort: Callable[[], str | None] = lambda: None,
    ) -> None:
        """`hear` gets the model, the effort, and the file that wants them; `effort` is now's."""
        self._hear = hear
        self._effort = effort

    @property
    def effort(self) -> str:
        """The effort of the model now; empty if none was chosen."""
        return self._effort() or ""

    def request_override(self, model: str | None, effort: str | None, source: str) -> None:
        """Ask for another model or effort; None leaves it as it is."""
        if model or effort:
            self._hear(model, effort, source)


class BriefMode:
    """How long answers should be."""

    def __init__(self, announce: Callable[[BriefChanged], object] = lambda _: None) -> None:
        self.enabled = False
        self._announce = announce

    def switch(self, *, enabled: bool) -> bool:
        """Turn short answers on or off and return whether that changed anything."""
        if enabled == self.enabled:
            return False
        self.enabled = enabled
        self._announce(BriefChanged(enabled=enabled))
        return True

    def replay(self, event: BriefChanged) -> None:
        """Take over what an earlier run of the session had announced."""
        self.enabled = event.enabled
