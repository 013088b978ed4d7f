"""What a skill wants for the rest of a turn: another model, another effort."""

from collections.abc import Callable


class TurnWishes:
    """Passes wishes on to whoever can fulfil them, until the turn is over."""

    def __init__(self, hear: Callable[[str | None, str | None, str], None]) -> None:
        """`hear` gets the model, the effort, and the file that wants them."""
        self._hear = hear

    def wish(self, model: str | None, effort: str | None, source: str) -> None:
        """Ask for another model or effort; None leaves it as it is."""
        if model or effort:
            self._hear(model, effort, source)
