"""Events of an agent as messages of the stream."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import msgspec

from handaxe.agent.events import (
    AgentEvent,
    FromAgent,
    MessageAdded,
    Nudged,
    RunFinished,
    RunStarted,
    Told,
    ToolAnswered,
    ToolCalled,
    TurnEnded,
)
from handaxe.agent.message_ids import make_answer_id, make_result_id
from handaxe.app.services.call_presenter import CallPresenter
from handaxe.contract.content import TextBlock
from handaxe.contract.events import (
    AgentEnded,
    AgentStarted,
    AssistantSaid,
    CallAsked,
    CallProgress,
    Compacted,
    Event,
    HookRan,
    JobEnded,
    JobStarted,
    ModeChanged,
)
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    TokenUsage,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
)
from handaxe.contract.ports.model import (
    Retrying,
    TextDelta,
    ThinkingDelta,
    ToolInputDelta,
    ToolStarted,
)
from handaxe.contract.result import ToolResult
from handaxe.frontends.stream_json.derived_fields import DerivedFields
from handaxe.frontends.stream_json.result_message import (
    MessageLookups,
    build_error_message,
    build_result_message,
)
from handaxe.frontends.stream_json.subagent_tasks import (
    SubagentTasks,
    build_task_ended,
    build_task_started,
)
from handaxe.frontends.stream_json.wire_types import (
    CallDisplays,
    Json,
    MessageBuilder,
    PartialEvents,
    build_structured_result,
    convert_block,
    split_blocks,
)
from handaxe.schema.user_turn import build_result_block

_INTERRUPTED = "[Request interrupted by user"
_GOES_ON = TextDelta, ThinkingDelta, ToolStarted, ToolInputDelta, CallAsked, CallProgress, FromAgent
"""Events during an answer, or because of a call in it."""


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Optional messages that the client wants."""

    partial_messages: bool = False
    user_messages: bool = False
    hook_events: bool = False
    agents_text: bool = False
    call_display: bool = False


class StreamCodec:
    """Turns the events of one session into messages, in an order that clients accept."""

    def __init__(
        self,
        session_id: str,
        facts: Callable[[RunStarted], Json],
        shown: StreamOptions,
        lookups: MessageLookups,
        presenter: CallPresenter | None = None,
    ) -> None:
        self._session_id = session_id
        self._builder = MessageBuilder(session_id)
        presenter = presenter if shown.call_display else None
        self._displays = CallDisplays(self._builder, presenter, partial=shown.partial_messages)
        self._facts = facts
        self._shown = shown
        self._lookups = lookups
        self._partial, self._derived = PartialEvents(), DerivedFields()
        self._tasks = SubagentTasks(lookups.output_of)
        self._model = ""
        self._message_id = ""
        self._logged_id = ""
        self._told = 0
        self._untold: list[AssistantBlock] = []
        self._is_due = False
        self._early: list[Json] | None = []
        self._held: list[ToolResult] = []
        self._is_answering = False
        self._answered: set[str] = set()
        self._answers = 0
        self._inputs: dict[str, Any] = {}
        self._since: dict[str, float] = {}
        self.context_tokens = 0
        """The length of the conversation at the last answer."""
        self.open_calls: dict[str, str] = {}
        """The tools of calls without a result, by call id."""

    def messages(self, event: AgentEvent) -> Iterator[Json]:
        """The messages of an agent event."""
        if self._shown.partial_messages:
            if isinstance(event, RunStarted):
                self._partial.begin(event.model)
            for raw in self._partial.events(event, self._message_id or self._start_answer()):
                yield self._builder.wrap_message("stream_event", event=raw, parent_tool_use_id=None)
        if isinstance(event, _GOES_ON):
            yield from self._flush_due()
        for message in self._of(event):
            yield {**message, "session_id": self._session_id}
        yield from self._displays.messages(event)

    def convert_session_event(self, event: Event) -> Iterator[Json]:
        """The messages of a session event."""
        if isinstance(event, AgentStarted | JobStarted):
            yield from self._flush_due()
        self._derived.hear(event)
        yield from self._displays.started(event)
        if isinstance(event, JobStarted | JobEnded):
            yield self._builder.build_system(
                "background_tasks_changed", tasks=self._tasks.update_live(event.job)
            )
        match event:
            case AgentStarted():
                yield self._builder.build_system("task_started", **self._tasks.started(event))
            case AgentEnded():
                told = self._tasks.ended(event)
                yield self._builder.build_system("task_notification", **told)
            case JobStarted() if event.job.kind != "agent":
                yield self._builder.build_system("task_started", **build_task_started(event.job))
            case JobEnded() if event.job.kind != "agent":
                yield self._builder.build_system(
                    "task_notification", **build_task_ended(event.job, event.summary)
                )
            case ModeChanged():
                yield self._builder.build_system("status", status=None, permissionMode=event.mode)
            case _:
                pass

    def build_heartbeats(self, least_s: float) -> Iterator[Json]:
        """Heartbeats of long calls; agents report by themselves."""
        now = time.monotonic()
        for call_id, tool in self.open_calls.items():
            lasted_s = now - self._since.get(call_id, now)
            if tool != "Agent" and lasted_s >= least_s / 2:
                yield self._builder.build_progress(
                    call_id, tool, elapsed_time_seconds=round(lasted_s, 1)
                )

    def _of(self, event: AgentEvent) -> Iterator[Json]:
        match event:
            case RunStarted():
                self._model, self._answers = event.model, 0
                self._untold, self._held, self._answered = [], [], set()
                self._inputs, self._since = {}, {}
                yield self._builder.build_system("init", **self._facts(event))
                yield from self._flush_early()
            case AssistantSaid():
                # Earlier parts had the id of the answer.
                self._message_id, self._is_answering = self._message_id or event.message_id, True
                if self._logged_id != event.message_id:
                    self._logged_id, self._told = event.message_id, 0
                self._untold += event.content
            case ToolCalled():
                self.open_calls[event.call.id] = event.call.tool
                self._since[event.call.id] = time.monotonic()
                self._inputs[event.call.id] = event.call.input
                self._is_due = True
            case ToolAnswered():
                self.open_calls.pop(event.result.id, None)
                if self._is_answering:
                    self._held.append(event.result)
                else:
                    yield from self._answer(event.result)
            case MessageAdded():
                yield from self._added(event)
            case FromAgent():
                yield from self._handle_agent_event(event)
            case TurnEnded():
                self._answers += 1
                self.context_tokens = event.context_tokens
            case RunFinished():
                yield from self._finish(event)
            case _:
                yield from self._convert_side_event(event)

    def _convert_side_event(self, event: AgentEvent) -> Iterator[Json]:
        """The messages of events outside the conversation."""
        match event:
            case Told() | Nudged():
                told = self._builder.build_system(
                    "informational", content=event.sentence, level="notice"
                )
                if self._early is None:
                    yield told
                else:
                    self._early.append(told)
            case Retrying():
                yield self._builder.build_system(
                    "api_retry",
                    attempt=event.attempt,
                    retry_delay_ms=round(event.delay_s * 1000),
                    error_status=event.status,
                    error=event.sentence,
                )
            case Compacted():
                trigger = "manual" if event.trigger == "manual" else "auto"
                metadata = {"trigger": trigger, "pre_tokens": event.tokens_before}
                metadata |= {"post_tokens": event.tokens_after}
                yield self._builder.build_system("compact_boundary", compact_metadata=metadata)
            case HookRan():
                if self._shown.hook_events:
                    yield from self._builder.build_hook(event)
            case CallProgress() if event.tool != "Agent":
                lasted_s = time.monotonic() - self._since.get(event.call_id, time.monotonic())
                yield self._builder.build_progress(
                    event.call_id,
                    event.tool,
                    elapsed_time_seconds=round(lasted_s, 1),
                    text=event.text,
                    **({} if event.data is None else {"data": event.data}),
                )
            case _:
                pass

    def _added(self, event: MessageAdded) -> Iterator[Json]:
        message = event.message
        if isinstance(message, AssistantMessage):
            self._model = message.model or self._model
            yield from self._tell_blocks(message.usage, message)
            self._is_answering, self._message_id = False, ""
            held, self._held = self._held, []
            for result in held:
                yield from self._answer(result)
        elif event.results or any(isinstance(b, ToolResultBlock) for b in message.content):
            yield from self._convert_answers(message, event.results, None)
        else:
            yield from self._said(message, event)

    def _said(self, message: UserMessage, event: MessageAdded) -> Iterator[Json]:
        """User messages, for clients that want them; also text that results bring along."""
        text = "".join(b.text for b in message.content if isinstance(b, TextBlock))
        is_interruption = message.synthetic and text.startswith(_INTERRUPTED)
        is_synthetic = is_interruption or event.is_beside_results
        if not is_synthetic and (message.synthetic or not self._shown.user_messages):
            return
        content = [convert_block(block) for block in message.content]
        told = self._builder.build_user(content, None)
        told["uuid"] = event.message_id
        yield told | ({"isSynthetic": True} if is_synthetic else {"isReplay": True})

    def _flush_early(self) -> Iterator[Json]:
        """The messages before the first turn, because a stream begins with its turn."""
        early, self._early = self._early, None
        yield from early or ()

    def _flush_due(self) -> Iterator[Json]:
        """The call messages of an answer; the last one has the tokens."""
        if self._is_due:
            yield from self._tell_blocks(TokenUsage(), None)

    def _tell_blocks(self, usage: TokenUsage, whole: AssistantMessage | None) -> Iterator[Json]:
        """The new finished parts of an answer; the last one has the tokens."""
        parts, self._untold, self._is_due = split_blocks(self._untold), [], False
        reason = whole.stop_reason if whole is not None else None
        for number, blocks in enumerate(parts, 1):
            is_last = number == len(parts)
            self._told += len(blocks)
            told = self._builder.build_assistant(
                self._message_id or self._start_answer(),
                self._model,
                blocks,
                usage if is_last else TokenUsage(),
                reason if is_last else None,
                None,
            )
            yield told | {"uuid": make_answer_id(self._logged_id, self._told - 1)}

    def _answer(self, result: ToolResult) -> Iterator[Json]:
        if result.id in self._answered:
            return
        self._answered.add(result.id)
        yield from self._result(build_result_block(result.id, result), result, None)

    def _convert_answers(
        self, message: UserMessage, results: tuple[ToolResult, ...], parent: str | None
    ) -> Iterator[Json]:
        """The new answers of a message."""
        by_id = {result.id: result for result in results}
        for block in message.content:
            if isinstance(block, ToolResultBlock) and block.tool_use_id not in self._answered:
                self._answered.add(block.tool_use_id)
                yield from self._result(block, by_id.get(block.tool_use_id), parent)

    def _result(
        self, block: ToolResultBlock, result: ToolResult | None, parent: str | None
    ) -> Iterator[Json]:
        told = self._builder.build_user([convert_block(block)], parent)
        told["uuid"] = make_result_id(block.tool_use_id)
        if result is not None:
            told["tool_use_result"] = build_structured_result(result)
            told |= self._derived.take(result)
            if (result.code or "").startswith("permission."):
                yield self._builder.build_system(
                    "permission_denied",
                    tool_name=result.tool,
                    tool_use_id=result.id,
                    message=result.text,
                )
        yield told

    def _handle_agent_event(self, event: FromAgent) -> Iterator[Json]:
        """Calls and results of a subagent, with the call that started it as parent."""
        inner = event.event
        if isinstance(inner, FromAgent):
            yield from self._handle_agent_event(inner)
        elif isinstance(inner, ToolCalled):
            self._inputs[inner.call.id] = inner.call.input
            yield self._builder.build_system(
                "task_progress", **self._tasks.record_call(event, inner.call.tool)
            )
        elif isinstance(inner, MessageAdded):
            message = inner.message
            if isinstance(message, UserMessage):
                yield from self._convert_answers(message, inner.results, event.call_id)
                return
            self._tasks.record_usage(event, message.usage)
            blocks = [
                block
                for block in message.content
                if self._shown.agents_text or isinstance(block, ToolUseBlock)
            ]
            if blocks:
                yield self._builder.build_assistant(
                    message.message_id or self._message_id or self._start_answer(),
                    message.model or self._model,
                    blocks,
                    message.usage,
                    message.stop_reason,
                    event.call_id,
                )

    def _finish(self, final: RunFinished) -> Iterator[Json]:
        self.open_calls.clear()
        yield from self._flush_due()
        self._is_answering, self._message_id = False, ""
        yield from self._flush_early()
        if (failed := build_error_message(final, str(uuid4()))) is not None:
            yield self._builder.add_ids(failed)
        lookups, inputs = self._lookups, self._inputs
        yield self._builder.add_ids(
            build_result_message(final, lookups, answers=self._answers, inputs=inputs)
        )

    def wrap_message(self, kind: str, **fields: object) -> Json:
        """A message of the session without an event."""
        return self._builder.wrap_message(kind, **fields)

    def _start_answer(self) -> str:
        self._message_id = f"msg_{uuid4().hex[:24]}"
        return self._message_id
