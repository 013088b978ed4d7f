"""A conversation as it was at one of its messages, to go on from there.

Calls that were made keep their results: what they did is not undone by forgetting what came after.
"""

from collections.abc import Iterable

import msgspec

from handaxe.agent.conversation import (
    AgentConversation,
    make_answer_id,
    make_result_id,
    split_block,
)
from handaxe.contract.events import (
    AssistantEnded,
    AssistantSaid,
    CallFinished,
    Compacted,
    Event,
    JobsTold,
    UserSaid,
)
from handaxe.contract.faults import SetupError
from handaxe.contract.messages import Message

_Relevant = UserSaid | AssistantSaid | AssistantEnded | Compacted | CallFinished | JobsTold


class NoSuchMessage(SetupError):
    """The conversation has no message of this name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"No message found with message.uuid of: {name}")


class RewindDropsMore(SetupError):
    """Going back would lose more than the turn that was named."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Resume rejected by --resume-drops-turn: {what}")


def collect_messages_until(
    events: Iterable[Event], name: str, *, only_dropping: str | None = None
) -> tuple[Message, ...]:
    """The conversation of a log up to and including the message of this name.

    With `only_dropping` nothing may follow but the turn that the person's message of that name
    began.

    Raises:
        NoSuchMessage: nobody said it here.
        RewindDropsMore: something else would be lost.
    """
    log = [event for event in events if isinstance(event, _Relevant)]
    results = {event.call_id: event.result for event in log if isinstance(event, CallFinished)}
    conversation = AgentConversation()
    pieces: dict[str, int] = {}
    later = iter(log)
    for event in later:
        kept, is_last = _cut_event(event, name, pieces)
        if kept is not None:
            conversation.take(kept, results.get)
        if is_last:
            break
    else:
        raise NoSuchMessage(name)
    rest = list(later)
    ending = next((one for one in rest if not isinstance(one, CallFinished)), None)
    if isinstance(ending, AssistantEnded):
        conversation.take(ending, results.get)
        rest = rest[rest.index(ending) + 1 :]
    if only_dropping is not None:
        _check(rest, only_dropping)
    conversation.repair(results.get)
    return conversation.messages


def _cut_event(
    event: _Relevant, name: str, pieces: dict[str, int]
) -> tuple[UserSaid | AssistantSaid | AssistantEnded | Compacted | None, bool]:
    """What of an event counts, and whether the message of this name ends with it."""
    match event:
        case UserSaid():
            return event, event.message_id == name
        case AssistantSaid():
            for at, block in enumerate(event.content, 1):
                for _ in split_block(block):
                    number = pieces[event.message_id] = pieces.get(event.message_id, -1) + 1
                    if make_answer_id(event.message_id, number) == name:
                        return msgspec.structs.replace(event, content=event.content[:at]), True
            return event, False
        case CallFinished():
            return None, make_result_id(event.call_id) == name
        case JobsTold():
            return None, False
        case _:
            return event, False


def _check(rest: list[_Relevant], dropped: str) -> None:
    """Refuse to lose anything but the turn of one prompt."""
    is_begun = False
    for event in rest:
        match event:
            case UserSaid() if not event.message.synthetic:
                if event.message_id != dropped:
                    raise RewindDropsMore(f"the message {event.message_id} would be lost too.")
                is_begun = True
            case JobsTold():
                raise RewindDropsMore("the news of a background task would be lost too.")
            case AssistantSaid() if not is_begun:
                raise RewindDropsMore("the turn that is kept goes on after that message.")
            case _:
                pass
    if not is_begun:
        raise RewindDropsMore(f"no message {dropped} follows.")
