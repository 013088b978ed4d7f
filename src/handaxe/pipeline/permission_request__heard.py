"""What was said on the way to a decision, beside the decision itself, and what ended the way."""

from typing import Any

from handaxe.contract.decision import Allow, Decision, Deny
from handaxe.contract.faults import ToolFault
from handaxe.hooks.outcome import HookPermissionChange, Outcome


class DeferredCall(Exception):
    """The call is not made now; whoever works here stops and can go on with it."""


class CallRefused(Exception):
    """Permission was not given; the fault for the model and the decision for the record."""

    def __init__(self, fault: ToolFault, decision: Decision) -> None:
        super().__init__(fault.sentence)
        self.fault = fault
        self.decision = decision
        self.stops: str | None = None
        if isinstance(decision, Deny) and decision.interrupt:
            self.stops = fault.sentence


class Undecided(Exception):
    """Validation wanted to look at a file that permission has not been given for."""


class InputRewritten(Exception):
    """Whoever was asked for permission gave it for another input."""

    def __init__(self, call_input: dict[str, Any], word: Allow) -> None:
        super().__init__()
        self.input = call_input
        self.word = word


class HookFeedback:
    """What hooks said on the way, beside their decisions."""

    messages: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    stops: str | None = None
    changes: tuple[HookPermissionChange, ...] = ()
    """What is to be allowed differently if the call may run."""
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
