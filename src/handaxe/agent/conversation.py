"""The model's conversation, built from events; every call in it has exactly one answer.

The same events are in the session's log, so a resumed or forked session has the same conversation.
An interrupted log is completed, because no provider accepts a call without its result. Only
deferred calls stay open until they run.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from handaxe.agent import reminders
from handaxe.contract.call import ToolCall
from handaxe.contract.content import TextBlock
from handaxe.contract.events import AssistantEnded, AssistantSaid, Compacted, UserSaid
from handaxe.contract.faults import LEFT_OPEN, ResultLost
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    Message,
    StopReason,
    ThinkingBlock,
    TokenUsage,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.conversation import Conversation
from handaxe.contract.result import ToolResult
from handaxe.schema.user_turn import build_result_block, collect_messages

ConversationEvent = UserSaid | AssistantSaid | AssistantEnded | Compacted
ResultOf = Callable[[str], ToolResult | None]


class AgentConversation:
    """Messages in order; unless an answer is open, they can be sent to any provider."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._open_id: str | None = None
        self._open_blocks: list[AssistantBlock] = []
        self._unanswered: dict[str, None] = {}
        self._left_open: tuple[str, ...] = ()
        self._held: dict[str, ToolResult] = {}
        """Results of other calls in the answer, until all of them have one."""
        self.call_ids: dict[str, int] = {}
        """Every call id of this conversation, with the number of its call."""

    @classmethod
    def from_events(
        cls,
        events: Iterable[ConversationEvent],
        result_of: ResultOf,
        put_off: str | None = None,
        asked: Collection[str] = (),
    ) -> "AgentConversation":
        """The conversation of a log, ready to continue.

        `put_off` is the call that a hook deferred, `asked` are those that wait for the user.
        """
        conversation = cls()
        for event in events:
            conversation.take(event, result_of)
        conversation._reopen(result_of, put_off, asked)
        conversation.repair(result_of, is_cut_off=True)
        return conversation

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages for a model: user and assistant alternate, results follow their calls."""
        return tuple(self._messages)

    @property
    def last_text(self) -> str:
        """The model's last text, without calls; includes continued answers."""
        said: list[str] = []
        is_wanted = True
        for message in reversed(self._messages):
            if isinstance(message, UserMessage):
                is_wanted = is_wanted or _is_continuation_request(message)
            elif not is_wanted or (said and _has_calls(message)):
                break
            else:
                said.append(extract_text(message))
                is_wanted = False
        return "".join(reversed(said))

    @property
    def is_unfinished(self) -> bool:
        """Whether the model had not finished and was not stopped."""
        last = self._messages[-1] if self._messages else None
        if isinstance(last, AssistantMessage):
            return last.stop_reason == "aborted"
        if last is None:
            return False
        end = last.content[-1] if last.content else None
        marks = reminders.INTERRUPTED, reminders.INTERRUPTED_TOOLS, *reminders.STOPPED.values()
        return not (isinstance(end, TextBlock) and end.text in marks)

    @property
    def open_calls(self) -> tuple[ToolCall, ...]:
        """Calls that must run before other messages, in order."""
        last = self._messages[-1] if self._messages and self._left_open else None
        blocks = last.content if isinstance(last, AssistantMessage) else ()
        return tuple(
            ToolCall(block.id, block.name, block.input)
            for block in blocks
            if isinstance(block, ToolUseBlock) and block.id in self._left_open
        )

    def read_before(self, call_ids: Sequence[str]) -> Conversation:
        """The message with the first of these calls that is found, and those before it."""
        wanted = set(call_ids)
        opened = AssistantMessage(tuple(self._open_blocks), message_id=self._open_id or "")
        if _makes_call(opened, wanted):
            return Conversation(self.messages, opened)
        for place in range(len(self._messages) - 1, -1, -1):
            message = self._messages[place]
            if isinstance(message, AssistantMessage) and _makes_call(message, wanted):
                return Conversation(tuple(self._messages[:place]), message)
        return Conversation(self.messages)

    def complete(self, results: Sequence[ToolResult]) -> list[ToolResult]:
        """These results, with earlier ones of the same answer."""
        found = {**self._held, **{result.id: result for result in results}}
        held = [found.pop(call_id) for call_id in self._unanswered if call_id in found]
        return [*held, *found.values()]

    def _reopen(self, result_of: ResultOf, put_off: str | None, asked: Collection[str]) -> None:
        """Leave calls open that the log shows as deferred, or as unanswered questions."""
        self._close_answer()
        results = {
            call_id: result
            for call_id in self._unanswered
            if (result := _find_result(call_id, result_of)) is not None
        }
        waiting = [call_id for call_id in self._unanswered if call_id not in results]
        # A call that a hook deferred counts only if no other one waits for an answer.
        if waiting == [put_off] or any(call_id in asked for call_id in waiting):
            self._left_open, self._held = tuple(waiting), results

    def take(self, event: ConversationEvent, result_of: ResultOf | None = None) -> None:
        """Apply one event."""
        # Whatever comes after a call comes after its answer.
        self._left_open = ()
        match event:
            case UserSaid():
                self.repair(result_of)
                self._append_user(event.message)
            case AssistantSaid():
                if self._open_id != event.message_id:
                    self.repair(result_of)
                self._open_id = event.message_id
                self._open_blocks += event.content
            case AssistantEnded():
                if self._open_id not in {None, event.message_id}:
                    self.repair(result_of)
                self._close(event.stop_reason, event.usage, event.model, event.message_id)
            case Compacted():
                self.replace(event.messages)

    def settle(self, results: Sequence[ToolResult]) -> UserMessage | None:
        """Answer the calls of the last message; returns the message with the results.

        None if calls were deferred: they stay open, and the other results are held.
        """
        found = {result.id: result for result in self.complete(results)}
        left = tuple(call_id for call_id, one in found.items() if one.code in LEFT_OPEN)
        if left:
            self._left_open = left
            self._held = {call_id: one for call_id, one in found.items() if call_id not in left}
            return None
        return self._answer(found)

    def repair(self, result_of: ResultOf | None = None, *, is_cut_off: bool = False) -> None:
        """Close an interrupted answer, and answer its unanswered calls.

        If the log ends after results, additions to them are missing.
        """
        self._close_answer()
        if self._unanswered and not self._left_open:
            found = self._held | {
                call_id: result
                for call_id in self._unanswered
                if result_of is not None
                and (result := _find_result(call_id, result_of)) is not None
            }
            self._answer(found)
            said = collect_messages([*found.values()]) if is_cut_off else ()
            for text in said:
                self._append_user(UserMessage((TextBlock(text),), synthetic=True))

    def become(self, other: "AgentConversation") -> None:
        """Become another conversation that was built later from the same log."""
        self.replace(other.messages)
        self._unanswered = dict(other._unanswered)
        self._left_open, self._held = other._left_open, dict(other._held)
        self.call_ids |= other.call_ids

    def _close_answer(self) -> None:
        if self._open_id is not None:
            self._close("aborted", TokenUsage(), "", self._open_id)

    def replace(self, messages: Iterable[Message]) -> None:
        """Replace all messages."""
        self._messages = []
        self._open_id, self._open_blocks, self._unanswered = None, [], {}
        self._left_open, self._held = (), {}
        for message in messages:
            if isinstance(message, UserMessage):
                self._append_user(message)
            else:
                self._append_assistant(message)
        self._unanswered = {}

    def _close(self, stop: StopReason, usage: TokenUsage, model: str, message_id: str) -> None:
        content = _filter_sendable(self._open_blocks, is_cut=stop == "aborted")
        self._open_id, self._open_blocks = None, []
        if content:
            self._append_assistant(
                AssistantMessage(content, model, message_id, stop_reason=stop, usage=usage)
            )

    def _append_assistant(self, message: AssistantMessage) -> None:
        last = self._messages[-1] if self._messages else None
        if isinstance(last, AssistantMessage):
            # An answer that was continued after an interruption is one message for every provider.
            content = _filter_sendable([*last.content, *message.content], is_cut=False)
            self._messages[-1] = AssistantMessage(
                content, message.model, message.message_id, message.stop_reason, message.usage
            )
        else:
            self._messages.append(message)
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                self._unanswered[block.id] = None
                self.call_ids.setdefault(block.id, len(self.call_ids) + 1)

    def _append_user(self, message: UserMessage) -> None:
        content = tuple(
            block
            for block in message.content
            if not (isinstance(block, TextBlock) and not block.text.strip())
        )
        if not content:
            return
        last = self._messages[-1] if self._messages else None
        if isinstance(last, UserMessage):
            both = last.synthetic and message.synthetic
            self._messages[-1] = UserMessage((*last.content, *content), synthetic=both)
        else:
            self._messages.append(UserMessage(content, message.synthetic))

    def _answer(self, results: Mapping[str, ToolResult]) -> UserMessage | None:
        self._left_open, self._held = (), {}
        if not self._unanswered:
            return None
        blocks = tuple(
            build_result_block(call_id, results.get(call_id)) for call_id in self._unanswered
        )
        self._unanswered = {}
        message = UserMessage(blocks, synthetic=True)
        self._append_user(message)
        return message


def _find_result(call_id: str, result_of: ResultOf) -> ToolResult | None:
    """The known result of a call, or one that says it is lost."""
    try:
        return result_of(call_id)
    except ResultLost as lost:
        return ToolResult.from_fault(lost)


def _makes_call(message: AssistantMessage, call_ids: Collection[str]) -> bool:
    return any(isinstance(one, ToolUseBlock) and one.id in call_ids for one in message.content)


def _has_calls(message: AssistantMessage) -> bool:
    return any(isinstance(block, ToolUseBlock) for block in message.content)


def _is_continuation_request(message: UserMessage) -> bool:
    """Whether the message asks the model to continue an interrupted answer."""
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    asking = (*reminders.UNFINISHED.values(), reminders.BROKEN_OFF)
    return any(sentence in text for text in texts for sentence in asking)


def extract_text(message: AssistantMessage) -> str:
    """The text of an answer without thinking and calls."""
    return "".join(block.text for block in message.content if isinstance(block, TextBlock))


def _filter_sendable(blocks: list[AssistantBlock], *, is_cut: bool) -> tuple[AssistantBlock, ...]:
    """The blocks that providers accept back: no blank text, no unsigned thinking at the end."""
    kept = [b for b in blocks if not (isinstance(b, TextBlock) and not b.text.strip())]
    while is_cut and kept and isinstance(kept[-1], ThinkingBlock):
        kept.pop()
    return tuple(kept)
