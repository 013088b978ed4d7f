"""Ask the model, run its calls, and repeat until it is done.

One run is one task. Events report progress; what must survive the process is in the session's log
before it is reported. However a run ends, the conversation can be sent again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from handaxe.agent import reminders, structured_output
from handaxe.agent.compaction import Compactor
from handaxe.agent.continuation import RunContinuation
from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import (
    PASSED_ON,
    AgentEvent,
    MessageAdded,
    RunStarted,
    Told,
    TurnEnded,
)
from handaxe.agent.input_messages import InputMessages, Prompt, make_message_id
from handaxe.agent.limits import ContinuationBudget, LoopOptions, Meter
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.loop_guard import LoopGuard
from handaxe.agent.run_hooks import RunHooks
from handaxe.agent.structured_output import FinalOutput, RunResult
from handaxe.agent.turn import ModelTurn
from handaxe.contract.events import Compacted, Event
from handaxe.contract.faults import SetupError
from handaxe.contract.job_state import EndedBy
from handaxe.contract.messages import Message
from handaxe.contract.ports.model import Model, ModelFailed, ModelRequest, ToolSpec
from handaxe.contract.result import ToolResult

_MENDABLE = frozenset({"broken_stream", "timed_out", "unreachable", "overloaded"})


class AgentLoop:
    """One conversation with one model in one session."""

    def __init__(
        self,
        model: Model,
        workplace: LoopContext,
        conversation: AgentConversation,
        *,
        system: Callable[[Sequence[ToolSpec]], tuple[str, ...]],
        meter: Meter,
        compactor: Compactor | None = None,
        output: FinalOutput | None = None,
        options: LoopOptions = LoopOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self.model, self.meter, self.output = model, meter, output
        self.conversation = conversation
        self._workplace = workplace
        self._system = system
        self.options = options
        self._compactor = compactor or Compactor(
            workplace, conversation, is_on=options.auto_compact
        )
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._hooks = RunHooks(workplace, self.tell)
        self.inputs = InputMessages(workplace, conversation, self.tell)
        self.continuation = RunContinuation(
            conversation, self.inputs, self._hooks, self.tell, output, meter
        )
        self._task: asyncio.Task[None] | None = None
        self._turn: ModelTurn | None = None
        if options.may_put_off:
            workplace.pipeline_context.may_put_off = self._can_defer
        self._has_begun = self._is_interrupted = self._is_silent = False
        self._stopped_by: EndedBy = "user"
        self._denials: list[ToolResult] = []

    @property
    def is_running(self) -> bool:
        """Whether a run is active."""
        return self._task is not None and not self._task.done()

    def send(self, prompt: Prompt) -> None:
        """Send a message to a running agent, which gets it when its current calls are done."""
        self.inputs.keep(prompt)

    def interrupt(self, by: EndedBy = "user") -> bool:
        """Stop the run: the model, and every call that is not in the background."""
        if not self.is_running or self._is_interrupted:
            return False
        self._is_interrupted, self._stopped_by = True, by
        if self._has_begun and self._task is not None:
            self._task.cancel()
        return True

    async def stop(self) -> None:
        """Interrupt the run, if there is one, and wait until it has cleaned up."""
        self.interrupt()
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    def suspend(self) -> bool:
        """Stop like `interrupt`, but without a note, because the work will continue later."""
        self._is_silent = self._workplace.pipeline_context.questions.outlive_work = True
        return self.interrupt()

    def tell(self, event: AgentEvent) -> None:
        """Add an event to the stream of the current run."""
        if self.is_running:
            self._denials += structured_output.find_denied_results(event)
            self._events.put_nowait(event)

    async def run(
        self, prompt: Prompt | None, message_id: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Work on a prompt; the last event says how it ended. None continues without a prompt."""
        if self.is_running:
            raise RuntimeError("This agent is already running; use `send` to send it a message.")
        self.continuation.begin(prompt)
        self._events, self._denials = asyncio.Queue(), []
        self._has_begun = self._is_interrupted = self._is_silent = False
        self._workplace.pipeline_context.questions.outlive_work = False
        self._task = task = asyncio.ensure_future(self._run_task(prompt, message_id))
        task.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                self.interrupt()
                await asyncio.wait((task,))

    def rewind(self, messages: tuple[Message, ...]) -> Compacted:
        """Return to an earlier state of the conversation."""
        self._workplace.drop_pending(self.conversation.call_ids)
        return self._compactor.rewind(messages)

    async def compact(self, instructions: str = "") -> Compacted | None:
        """Shorten the conversation now; None if it is empty or a hook forbids it."""
        if self.is_running:
            raise RuntimeError("This agent is running; it shortens its conversation itself.")
        if self.conversation.open_calls:
            raise SetupError("A call is waiting. Continue with it first.")
        specs = self._workplace.specs()
        system = self._system(specs)
        return await self._compactor.compact(
            self.model, system, specs, self.meter, trigger="manual", instructions=instructions
        )

    async def _run_task(self, prompt: Prompt | None, message_id: str | None) -> None:
        self._has_begun = True
        if self.output is not None:
            self.output.start()
        stop_listening = self._workplace.subscribe(self._handle_session_event)
        try:
            ending = await self._run_until_interrupted(prompt, message_id)
        finally:
            stop_listening()
        context = self._workplace.pipeline_context
        pending = self._workplace.list_pending(self.conversation.call_ids)
        last = structured_output.build_run_finished(
            ending, self.meter, context.session_id, self._denials, pending
        )
        self.continuation.last_ending = last.terminal_reason
        context.emit(structured_output.build_run_ended(last))
        self._workplace.flush()
        self.tell(last)

    async def _run_until_interrupted(
        self, prompt: Prompt | None, message_id: str | None
    ) -> RunResult:
        try:
            if self._is_interrupted:
                return await self._clean_up()
            return await self._work(prompt, message_id)
        except asyncio.CancelledError:
            if not self._is_interrupted or (task := asyncio.current_task()) is None:
                await self._clean_up()
                raise
            task.uncancel()
            late = self.meter.check_time_limit()
            aborted = await self._clean_up(mark=late is None)
            return aborted if late is None else structured_output.make_limit_result(late)
        except ModelFailed as failed:
            await self._clean_up(mark=False)
            await self._hooks.failed(failed)
            return structured_output.make_failure_result(failed)

    async def _clean_up(self, *, mark: bool = True) -> RunResult:
        """Leave a valid conversation: every call answered, the interruption noted."""
        turn, self._turn = self._turn, None
        had_calls = False
        if turn is not None:
            turn.cut_off()
            had_calls = bool(turn.calls)
            self._settle(turn, await turn.stream.close())
        else:
            self.conversation.repair()
        said = reminders.describe_stop(self._stopped_by, had_calls=had_calls)
        if self._is_silent:
            said = reminders.SUSPENDED
        elif mark and not self.conversation.open_calls:
            self.inputs.say(said, synthetic=True)
        return structured_output.make_aborted_result(said, had_calls=had_calls)

    async def _work(self, prompt: Prompt | None, message_id: str | None) -> RunResult:
        guard = LoopGuard(stop_after_nudges=self.options.stop_after_nudges)
        rest = ContinuationBudget()
        ending = await self._open(guard, rest, prompt)
        if ending is None and prompt is not None:
            ending = await self.continuation.submit_prompt(prompt, message_id, self.options)
        return ending or await self._answers(guard, rest)

    async def _answers(self, guard: LoopGuard, rest: ContinuationBudget) -> RunResult:
        """Get answers until one of them is final."""
        while True:
            reached = self.meter.check_limits()
            if reached is not None:
                return structured_output.make_limit_result(reached)
            if (near := self.meter.check_near_limit()) is not None:
                self.tell(Told(near))
                self.inputs.remind([f"{near} {reminders.COME_TO_AN_END}"])
            turn = await self._answer(rest)
            results = await self._results(turn)
            self._count(turn)
            if rest.was_broken:
                rest.was_broken = False
                self.inputs.remind([reminders.BROKEN_OFF])
                if not turn.calls:
                    continue
            ending = (
                await self.continuation.handle_results(turn, results, guard, rest, self.options)
                if turn.calls
                else await self.continuation.handle_final_answer(turn, rest, self.options)
            )
            if ending is not None:
                return ending

    async def _results(self, turn: ModelTurn) -> list[ToolResult]:
        results = self.conversation.complete(await turn.results())
        self._turn = None
        self._settle(turn, results)
        return results

    async def _open(
        self, guard: LoopGuard, rest: ContinuationBudget, prompt: Prompt | None
    ) -> RunResult | None:
        """Begin a run; an ending if waiting calls end it at once."""
        context = self._workplace.pipeline_context
        if context.opening is not None:
            await context.opening()
        self.conversation.repair()
        names = tuple(spec.name for spec in self._workplace.specs())
        self.tell(RunStarted(context.session_id, self.model.name, names))
        if calls := self.conversation.open_calls:
            if (missing := await self._workplace.find_missing(calls)) is not None:
                return structured_output.make_unavailable_result(missing)
            turn = self._turn = self._make_turn()
            turn.resume_calls(calls)
            results = await self._results(turn)
            ending = await self.continuation.handle_results(
                turn, results, guard, rest, self.options, has_prompt=prompt is not None
            )
            if ending is not None:
                return ending
        self.inputs.flush_queue()
        return None

    def _make_turn(self) -> ModelTurn:
        return ModelTurn(self._workplace, self.conversation, self.tell, make_message_id())

    async def _can_defer(self, call_id: str) -> bool:
        """Whether the work can stop before a call: it is the only one of the answer."""
        return self._turn is not None and await self._turn.is_only(call_id)

    async def _answer(self, rest: ContinuationBudget) -> ModelTurn:
        """One complete answer; recoverable failures are asked again."""
        compacted = False
        while True:
            specs = self._workplace.specs()
            system = self._system(specs)
            self.inputs.remind(await self._workplace.changes())
            self._workplace.pipeline_context.effort = self.options.effort
            shorter = await self._compactor.make_room(self.model, system, specs, self.meter)
            if shorter is not None:
                self.tell(shorter)
            request = ModelRequest(
                system=system,
                messages=self.conversation.messages,
                tools=specs,
                waiting_tools=self._workplace.waiting_specs(),
                max_tokens=self.options.max_output_tokens,
                thinking_tokens=self.options.thinking_tokens,
                effort=self.options.effort,
                origin=self._workplace.origin,
            )
            turn = self._turn = self._make_turn()
            try:
                await turn.hear(self.model, request)
            except ModelFailed as failed:
                if turn.has_said_anything:
                    if failed.failure not in _MENDABLE or not rest.may_go_on():
                        raise
                    turn.cut_off()
                    self.tell(Told(f"{failed.sentence} Asking the model to continue."))
                    rest.was_broken = True
                    return turn
                if failed.failure != "too_long" or compacted or not self.options.auto_compact:
                    raise
                compacted = True
                self._turn = None
                shorter = await self._compactor.compact(
                    self.model, system, specs, self.meter, trigger="too_long"
                )
                if shorter is None:
                    raise
                self.tell(shorter)
            else:
                return turn

    def _settle(self, turn: ModelTurn, results: Sequence[ToolResult]) -> None:
        self._compactor.heard(turn.usage)
        if (message := self.conversation.settle(results)) is not None:
            self.tell(MessageAdded(message, make_message_id(), tuple(results)))
        if turn.model:
            self.meter.add(turn.model, turn.usage, asked=self.model.name)
        self.meter.model_s += turn.model_s

    def _count(self, turn: ModelTurn) -> None:
        if turn.calls:
            self.meter.turns += 1
        tokens = self._compactor.tokens()
        self.tell(TurnEnded(self.meter.turns, len(turn.calls), turn.usage, tokens))

    def _handle_session_event(self, event: Event) -> None:
        if isinstance(event, PASSED_ON):
            self.tell(event)
        self._hooks.handle_event(event)
