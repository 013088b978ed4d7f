"""Ask the model, run its calls, repeat until it has nothing left to do.

One run is one task. What happens goes out as events; what has to outlive the process is in the
session's log before anybody sees it. However a run ends, the conversation can be sent again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence

from handaxe.agent import endings, wording
from handaxe.agent.compaction import Compactor
from handaxe.agent.conversation import Conversation
from handaxe.agent.endings import Ending
from handaxe.agent.events import (
    PASSED_ON,
    AgentEvent,
    MessageAdded,
    Nudged,
    RunStarted,
    Told,
    TurnEnded,
)
from handaxe.agent.limits import Meter
from handaxe.agent.loop_guard import LoopGuard
from handaxe.agent.loop_options import LoopOptions
from handaxe.agent.patience import Patience
from handaxe.agent.run_hooks import RunHooks
from handaxe.agent.speaking import Prompt, Speaker, new_id
from handaxe.agent.structured import FinalOutput
from handaxe.agent.turn import Turn
from handaxe.agent.workplace import Workplace
from handaxe.contract.events import Compacted, Event
from handaxe.contract.faults import Deferred, SetupError
from handaxe.contract.messages import Message
from handaxe.contract.ports.model import Model, ModelFailed, ModelRequest, ToolSpec
from handaxe.contract.result import ToolResult

_MENDABLE = frozenset({"broken_stream", "timed_out", "unreachable", "overloaded"})


class AgentLoop:
    """One conversation with one model in one workplace."""

    def __init__(
        self,
        model: Model,
        workplace: Workplace,
        conversation: Conversation,
        *,
        system: Callable[[Sequence[ToolSpec]], tuple[str, ...]],
        meter: Meter,
        compactor: Compactor | None = None,
        output: FinalOutput | None = None,
        options: LoopOptions = LoopOptions(),  # noqa: B008 - a frozen value
    ) -> None:
        self.model = model
        self.conversation = conversation
        self.meter = meter
        self.output = output
        self._workplace = workplace
        self._system = system
        self.options = options
        self._compactor = compactor or Compactor(
            workplace, conversation, is_on=options.auto_compact
        )
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()
        self._hooks = RunHooks(workplace, self.tell)
        self._speaker = Speaker(workplace, conversation, self.tell)
        self._task: asyncio.Task[None] | None = None
        self._turn: Turn | None = None
        if options.may_put_off:
            workplace.among.may_put_off = self._may_put_off
        self._has_begun = False
        self._is_interrupted = self._is_silent = False
        self._denials: list[ToolResult] = []

    @property
    def is_running(self) -> bool:
        """Whether a run is under way."""
        return self._task is not None and not self._task.done()

    def send(self, prompt: Prompt) -> None:
        """Say something to a running agent: it hears it as soon as its calls are done."""
        self._speaker.keep(prompt)

    def interrupt(self) -> bool:
        """Stop the run: the model, and every call that is not in the background."""
        if not self.is_running or self._is_interrupted:
            return False
        self._is_interrupted = True
        if self._has_begun and self._task is not None:
            self._task.cancel()
        return True

    async def stop(self) -> None:
        """Interrupt the run, if there is one, and wait until it is tidied up."""
        self.interrupt()
        if self._task is not None and not self._task.done():
            await asyncio.wait((self._task,))

    def suspend(self) -> bool:
        """Stop like `interrupt`, but say nothing of it: the work is meant to go on later."""
        self._is_silent = True
        return self.interrupt()

    def tell(self, event: AgentEvent) -> None:
        """Put an event into the stream of whoever listens; between runs nobody does."""
        if self.is_running:
            self._denials += endings.refused_in(event)
            self._events.put_nowait(event)

    async def run(
        self, prompt: Prompt | None, message_id: str | None = None
    ) -> AsyncGenerator[AgentEvent, None]:
        """Work on a prompt; the last event says how it ended. None goes on without a new one."""
        if self.is_running:
            raise RuntimeError("This agent is at work; use `send` to tell it something.")
        self._events = asyncio.Queue()
        self._has_begun = self._is_interrupted = self._is_silent = False
        self._denials = []
        self._task = task = asyncio.ensure_future(self._drive(prompt, message_id))
        task.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            await task
        finally:
            if not task.done():
                self.interrupt()
                await asyncio.wait((task,))

    def go_back(self, messages: tuple[Message, ...]) -> Compacted:
        """Forget what came after these messages, which the conversation once was."""
        return self._compactor.go_back(messages)

    async def compact(self, instructions: str = "") -> Compacted | None:
        """Make the conversation shorter now; None if nothing is there or a hook forbids it."""
        if self.is_running:
            raise RuntimeError("This agent is at work; it makes its conversation shorter itself.")
        if self.conversation.put_off is not None:
            raise SetupError("A call waits to be made. Go on with it first.")
        specs = self._workplace.specs()
        return await self._compactor.compact(
            self.model,
            self._system(specs),
            specs,
            self.meter,
            trigger="manual",
            instructions=instructions,
        )

    async def _drive(self, prompt: Prompt | None, message_id: str | None) -> None:
        self._has_begun = True
        self.meter.start()
        if self.output is not None:
            self.output.start()
        stop_listening = self._workplace.subscribe(self._overhear)
        try:
            ending = await self._until_interrupted(prompt, message_id)
        finally:
            stop_listening()
        last = endings.finished(ending, self.meter, self._workplace.among.session_id, self._denials)
        self._workplace.among.emit(endings.logged(last))
        self._workplace.flush()
        self.tell(last)

    async def _until_interrupted(self, prompt: Prompt | None, message_id: str | None) -> Ending:
        try:
            if self._is_interrupted:
                return await self._tidy_up()
            return await self._work(prompt, message_id)
        except asyncio.CancelledError:
            if not self._is_interrupted or (task := asyncio.current_task()) is None:
                await self._tidy_up()
                raise
            task.uncancel()
            late = self.meter.out_of_time()
            aborted = await self._tidy_up(mark=late is None)
            return aborted if late is None else endings.used_up(late)
        except ModelFailed as failed:
            await self._tidy_up(mark=False)
            await self._hooks.failed(failed)
            return endings.unanswered(failed)

    async def _tidy_up(self, *, mark: bool = True) -> Ending:
        """Leave a conversation that can go on: every call answered, the interruption said."""
        turn, self._turn = self._turn, None
        had_calls = False
        if turn is not None:
            turn.cut_off()
            had_calls = bool(turn.calls)
            self._settle(turn, await turn.stream.close())
        else:
            self.conversation.repair()
        reason = "aborted_tools" if had_calls else "aborted_streaming"
        said = wording.INTERRUPTED_TOOLS if had_calls else wording.INTERRUPTED
        if self._is_silent:
            said = wording.SUSPENDED
        elif mark and self.conversation.put_off is None:
            self._speaker.say(said, synthetic=True)
        return Ending(reason, said, subtype="error_during_execution", is_error=True, errors=(said,))

    async def _work(self, prompt: Prompt | None, message_id: str | None) -> Ending:
        guard = LoopGuard(stop_after_nudges=self.options.stop_after_nudges)
        ending = await self._open(guard)
        if ending is None and prompt is not None:
            ending = await self._submit(prompt, message_id)
        return ending or await self._answers(guard)

    async def _answers(self, guard: LoopGuard) -> Ending:
        """Answer after answer until one of them is the last."""
        rest = Patience()
        while True:
            reached = self.meter.reached()
            if reached is not None:
                return endings.used_up(reached)
            if (near := self.meter.nearly_reached()) is not None:
                self.tell(Told(near))
                self._speaker.remind([f"{near} {wording.COME_TO_AN_END}"])
            turn = await self._answer(rest)
            results = await self._results(turn)
            self._count(turn)
            if rest.was_broken:
                rest.was_broken = False
                self._speaker.remind([wording.BROKEN_OFF])
                if not turn.calls:
                    continue
            ending = (
                self._after_calls(turn, results, guard)
                if turn.calls
                else await self._after_words(turn, rest)
            )
            if ending is not None:
                return ending

    async def _results(self, turn: Turn) -> list[ToolResult]:
        results = await turn.results()
        self._turn = None
        self._settle(turn, results)
        return results

    async def _open(self, guard: LoopGuard) -> Ending | None:
        """Begin; an ending if the call that waits to be made ends it at once."""
        among = self._workplace.among
        if among.opening is not None:
            await among.opening()
        self.conversation.repair()
        names = tuple(spec.name for spec in self._workplace.specs())
        self.tell(RunStarted(among.session_id, self.model.name, names))
        call = self.conversation.put_off
        if call is not None:
            if not await self._workplace.has_tool(call.tool):
                return endings.not_there(call)
            turn = self._turn = Turn(self._workplace, self.conversation, self.tell, new_id())
            turn.go_on(call)
            if (ending := self._after_calls(turn, await self._results(turn), guard)) is not None:
                return ending
        self._speaker.remind(among.hooks.take_late())
        return None

    async def _may_put_off(self, call_id: str) -> bool:
        """Whether the work can stop before a call: it is the only one of the answer."""
        return self._turn is not None and await self._turn.is_only(call_id)

    async def _submit(self, prompt: Prompt, message_id: str | None) -> Ending | None:
        """Let hooks see the prompt, then say it; an ending if they refuse it."""
        if self.options.is_sub_agent:
            self._speaker.say(prompt, message_id=message_id)
            return None
        outcome = await self._hooks.submitted(prompt)
        refusal = outcome.blocked or outcome.stop
        if refusal is not None:
            return Ending("prompt_blocked", refusal, is_error=True, errors=(refusal,))
        self._speaker.say(prompt, message_id=message_id)
        self._speaker.remind(outcome.messages)
        return None

    async def _answer(self, rest: Patience) -> Turn:
        """One whole answer; what can be mended is mended by asking again."""
        compacted = False
        while True:
            specs = self._workplace.specs()
            system = self._system(specs)
            self._speaker.remind(await self._workplace.changes())
            self._workplace.among.effort = self.options.effort
            shorter = await self._compactor.make_room(self.model, system, specs, self.meter)
            if shorter is not None:
                self.tell(shorter)
            request = ModelRequest(
                system=system,
                messages=self.conversation.messages,
                tools=specs,
                max_tokens=self.options.max_output_tokens,
                thinking_tokens=self.options.thinking_tokens,
                effort=self.options.effort,
            )
            turn = self._turn = Turn(self._workplace, self.conversation, self.tell, new_id())
            try:
                await turn.hear(self.model, request)
            except ModelFailed as failed:
                if turn.has_said_anything:
                    if failed.failure not in _MENDABLE or not rest.may_go_on():
                        raise
                    turn.cut_off()
                    self.tell(Told(f"{failed.sentence} Asking the model to go on."))
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

    def _settle(self, turn: Turn, results: Sequence[ToolResult]) -> None:
        self._compactor.heard(turn.usage)
        message = None
        if any(result.code == Deferred.code for result in results):
            self.conversation.leave_open(turn.calls[0].id)
        else:
            message = self.conversation.settle(results)
        if message is not None:
            self.tell(MessageAdded(message, new_id(), tuple(results)))
        if turn.model:
            self.meter.add(turn.model, turn.usage, asked=self.model.name)
        self.meter.model_s += turn.model_s

    def _count(self, turn: Turn) -> None:
        if turn.calls:
            self.meter.turns += 1
        tokens = self._compactor.tokens()
        self.tell(TurnEnded(self.meter.turns, len(turn.calls), turn.usage, tokens))

    def _after_calls(
        self, turn: Turn, results: Sequence[ToolResult], guard: LoopGuard
    ) -> Ending | None:
        """What follows on results: the end, or something more to say to the model."""
        if (call := self.conversation.put_off) is not None:
            return endings.put_off(call, self.conversation.last_text)
        if self.output is not None and self.output.heard(results):
            return Ending("completed", self.output.text, output=self.output.value)
        stop = next((result.stops for result in results if result.stops), None)
        if stop is not None:
            return Ending("hook_stopped", stop)
        if self.output is not None and self.output.is_hopeless:
            return self.output.ending()
        self._speaker.remind([text for result in results for text in result.messages])
        circle = guard.watch(turn.calls, results)
        if circle is not None:
            self.tell(Nudged(circle.sentence))
            if circle.action == "stop":
                return Ending("loop", circle.sentence, is_error=True, errors=(circle.sentence,))
            self._speaker.remind([f"You go in circles: {circle.sentence}"])
        self._speaker.pass_on()
        return None

    async def _after_words(self, turn: Turn, rest: Patience) -> Ending | None:
        """An answer without calls ends the run, unless somebody has a reason to go on."""
        if (unfinished := wording.UNFINISHED.get(turn.stop_reason)) and rest.may_go_on():
            self._speaker.remind([unfinished])
            return None
        if self._speaker.pass_on() or await self._speaker.wait_for_work(
            self.options.wait_for_agents_s
        ):
            return None
        if turn.stop_reason == "refusal":
            said = self.conversation.last_text or "The model refused to answer."
            return Ending("refused", said, stop_reason="refusal", is_error=True, errors=(said,))
        if self.output is not None and not self.output.is_given:
            if self.output.is_hopeless:
                return self.output.ending()
            self._speaker.remind([self.output.demand()])
            return None
        return await self._ask_to_stop(turn, rest)

    async def _ask_to_stop(self, turn: Turn, rest: Patience) -> Ending | None:
        """Hooks may want the model to go on; not for ever."""
        outcome = await self._hooks.ending(
            self.conversation.last_text,
            is_again=rest.stop_blocks > 0,
            is_sub_agent=self.options.is_sub_agent,
        )
        # What a hook adds for the model would not be heard if the work ended here.
        wishes = [*outcome.messages, *filter(None, (outcome.blocked,))]
        if wishes and outcome.stop is None and rest.may_be_blocked():
            self._speaker.remind(wishes)
            return None
        return Ending("completed", self.conversation.last_text, stop_reason=turn.stop_reason)

    def _overhear(self, event: Event) -> None:
        if isinstance(event, PASSED_ON):
            self.tell(event)
        self._hooks.overheard(event)
