"""A conversation as it was at one of its messages, to go on from there; sessions go back, or fork.

Calls that were made keep their results: what they did is not undone by forgetting what came after.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import msgspec

from handaxe.agent.conversation import AgentConversation
from handaxe.agent.message_ids import make_answer_id, make_result_id, split_block
from handaxe.agent.truncation import estimate_message
from handaxe.contract.content import TextBlock
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
from handaxe.contract.faults.session import NoSuchMessage
from handaxe.contract.messages import AssistantBlock, Message, ToolUseBlock, UserBlock
from handaxe.storage.home import generate_session_id
from handaxe.storage.sessions import (
    append_event,
    fork_session,
    hold_session,
    read_events,
)

_TEXT_CHARS = 200

_Relevant = UserSaid | AssistantSaid | AssistantEnded | Compacted | CallFinished | JobsTold


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
        raise NoSuchMessage(name=name)
    rest = list(later)
    ending = next((one for one in rest if not isinstance(one, CallFinished)), None)
    if isinstance(ending, AssistantEnded):
        conversation.take(ending, results.get)
        rest = rest[rest.index(ending) + 1 :]
    if only_dropping is not None:
        _check(rest, only_dropping)
    conversation.repair(results.get)
    return conversation.messages


class SavedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message of a session's log, as one can go back to it."""

    id: str
    role: Literal["user", "assistant", "tool"]
    text: str
    """How it begins, in one line; the name of the tool where it is a result."""
    time: float
    """When it was said, in seconds since 1970."""


def list_messages(home: Path, session_id: str) -> list[SavedMessage]:
    """All that was said in a session, in order, also what a later summary or return left out."""
    tools: dict[str, str] = {}
    pieces: dict[str, int] = {}
    found: list[SavedMessage] = []
    for event in read_events(home, session_id):
        match event:
            case UserSaid() if not event.message.synthetic:
                text = _join_texts(event.message.content)
                found.append(_make_saved(event.message_id, "user", text, event.at))
            case AssistantSaid():
                count = sum(len(split_block(block)) for block in event.content)
                last = pieces[event.message_id] = pieces.get(event.message_id, -1) + count
                name = make_answer_id(event.message_id, last)
                tools |= {
                    one.id: one.name for one in event.content if isinstance(one, ToolUseBlock)
                }
                found.append(_make_saved(name, "assistant", _tell_answer(event), event.at))
            case CallFinished() if event.call_id in tools:
                name = make_result_id(event.call_id)
                found.append(_make_saved(name, "tool", tools[event.call_id], event.at))
            case _:
                pass
    return found


def rewind_session(home: Path, session_id: str, message_id: str) -> None:
    """Forget what was said after a message; files stay as they are, and the log keeps all.

    Raises:
        NoSuchMessage: nobody said it there.
        SessionBusy: somebody has the session open.
    """
    with hold_session(home, session_id):
        append_event(home, session_id, _build_rewind(home, session_id, message_id))


def fork_session_at(
    home: Path, session_id: str, fork_id: str | None = None, *, message_id: str | None = None
) -> str:
    """Copy a session's past, whole or up to a message, to go on from there; the copy's id.

    Raises:
        NoSuchMessage: nobody said it there.
        SessionExists: the id of the copy is taken.
    """
    fork_id = generate_session_id() if fork_id is None else fork_id
    cut = None if message_id is None else _build_rewind(home, session_id, message_id)
    fork_session(home, session_id, fork_id)
    if cut is not None:
        append_event(home, fork_id, cut)
    return fork_id


def _build_rewind(home: Path, session_id: str, message_id: str) -> Compacted:
    """What the log has to say so that the conversation ends with a message."""
    events = list(read_events(home, session_id))
    kept = collect_messages_until(events, message_id)
    results = {event.call_id: event.result for event in events if isinstance(event, CallFinished)}
    whole = AgentConversation()
    for event in events:
        if isinstance(event, UserSaid | AssistantSaid | AssistantEnded | Compacted):
            whole.take(event, results.get)
    return Compacted(
        trigger="rewound",
        method="cut",
        tokens_before=sum(map(estimate_message, whole.messages)),
        tokens_after=sum(map(estimate_message, kept)),
        messages=kept,
    )


def _make_saved(
    name: str, role: Literal["user", "assistant", "tool"], text: str, at: float
) -> SavedMessage:
    return SavedMessage(id=name, role=role, text=" ".join(text.split())[:_TEXT_CHARS], time=at)


def _tell_answer(said: AssistantSaid) -> str:
    """What the model said, or else what it called."""
    called = [block.name for block in said.content if isinstance(block, ToolUseBlock)]
    return _join_texts(said.content) or ", ".join(called)


def _join_texts(blocks: Iterable[UserBlock | AssistantBlock]) -> str:
    return " ".join(block.text for block in blocks if isinstance(block, TextBlock))


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
