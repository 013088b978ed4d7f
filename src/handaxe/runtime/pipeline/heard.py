"""What was said on the way to a decision, beside the decision itself."""

from handaxe.contract.decision import Allow
from handaxe.runtime.hooks.outcome import Outcome


class PutOff(Exception):
    """The call is not made now; whoever works here stops and can go on with it."""


class Heard:
    """What hooks said on the way, beside their decisions."""

    messages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stops: str | None = None
    were_asked = False
    has_answer = False
    """Whether a hook brought what a person would have been asked for."""
    answer: Allow | None = None
    """A person's yes to another input; it holds for that input too."""

    def take(self, outcome: Outcome) -> None:
        """Keep what is to be shown."""
        self.messages += outcome.messages
        self.notes += outcome.notes
        self.stops = self.stops or outcome.stop
