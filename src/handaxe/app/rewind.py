"""Rewind a conversation to one of its messages, or fork it there.

Calls keep their results: dropping later messages does not undo their changes.
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
    """Rewinding would drop more than the named turn."""

    def __init__(self, what: str) -> None:
        super().__init__(f"Resume rejected by --resume-drops-turn: {what}")


def collect_messages_until(
    events: Iterable[Event], name: str, *, only_dropping: str | None = None
) -> tuple[Message, ...]:
    """The conversation of a log up to and including this message.

    With `only_dropping`, only the turn of that user message may follow. Raises NoSuchMessage for an
    unknown message, RewindDropsMore if something else would be dropped.
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
    """A message of a session's log that it can be rewound to."""

    id: str
    role: Literal["user", "assistant", "tool"]
    text: str
    """Its start in one line; for a result the name of the tool."""
    time: float
    """Its time, in seconds since 1970."""


def list_messages(home: Path, session_id: str) -> list[SavedMessage]:
    """All messages of a session in order, dropped and summarized ones included."""
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
    """Drop the messages after one message; files stay, and the log keeps everything.

    Raises NoSuchMessage for an unknown message, SessionBusy while another process has the session
    open.
    """
    with hold_session(home, session_id):
        append_event(home, session_id, _build_rewind(home, session_id, message_id))


def fork_session_at(
    home: Path, session_id: str, fork_id: str | None = None, *, message_id: str | None = None
) -> str:
    """Copy a session, whole or up to a message, and return the id of the copy.

    Raises NoSuchMessage for an unknown message, SessionExists if the id of the copy is taken.
    """
    fork_id = generate_session_id() if fork_id is None else fork_id
    cut = None if message_id is None else _build_rewind(home, session_id, message_id)
    fork_session(home, session_id, fork_id)
    if cut is not None:
        append_event(home, fork_id, cut)
    return fork_id


def _build_rewind(home: Path, session_id: str, message_id: str) -> Compacted:
    """The log event that ends the conversation at a message."""
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
    """The text of the model, or its calls."""
    called = [block.name for block in said.content if isinstance(block, ToolUseBlock)]
    return _join_texts(said.content) or ", ".join(called)


def _join_texts(blocks: Iterable[UserBlock | AssistantBlock]) -> str:
    return " ".join(block.text for block in blocks if isinstance(block, TextBlock))


def _cut_event(
    event: _Relevant, name: str, pieces: dict[str, int]
) -> tuple[UserSaid | AssistantSaid | AssistantEnded | Compacted | None, bool]:
    """The messages of an event, and whether the message of this id ends with it."""
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
    """Refuse to drop more than the turn of one prompt."""
    is_begun = False
    for event in rest:
        match event:
            case UserSaid() if not event.message.synthetic:
                if event.message_id != dropped:
                    raise RewindDropsMore(f"the message {event.message_id} would be dropped too.")
                is_begun = True
            case JobsTold():
                raise RewindDropsMore("the news of a background task would be dropped too.")
            case AssistantSaid() if not is_begun:
                raise RewindDropsMore("the kept turn continues after that message.")
            case _:
                pass
    if not is_begun:
        raise RewindDropsMore(f"no message {dropped} follows.")
