"""Decide whether a run begins and whether it continues after an answer."""

import time
from collections.abc import Callable, Sequence

from handaxe.agent import reminders
from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent, Nudged
from handaxe.agent.input_messages import InputMessages, Prompt
from handaxe.agent.limits import ContinuationBudget, LoopOptions, Meter
from handaxe.agent.loop_guard import LoopGuard
from handaxe.agent.run_hooks import RunHooks
from handaxe.agent.structured_output import (
    FinalOutput,
    RunResult,
    make_deferred_result,
    make_pending_result,
)
from handaxe.agent.turn import ModelTurn
from handaxe.contract.faults import AnswerPending
from handaxe.contract.result import ToolResult
from handaxe.schema.user_turn import collect_messages


class RunContinuation:
    """Decides on a prompt and each answer whether the run ends; if not, tells the model why."""

    def __init__(
        self,
        conversation: AgentConversation,
        speaker: InputMessages,
        hooks: RunHooks,
        tell: Callable[[AgentEvent], None],
        output: FinalOutput | None,
        meter: Meter,
    ) -> None:
        self._meter = meter
        self._conversation = conversation
        self._speaker = speaker
        self._hooks = hooks
        self._tell = tell
        self._output = output
        self.last_ending: str | None = None
        """Why the last run ended; None if there was none."""

    @property
    def may_wake(self) -> bool:
        """Whether a run may start without a prompt: the last one ended normally."""
        if self._conversation.open_calls:
            return False
        if self.last_ending is None:
            return True
        return self.last_ending == "completed" and self._meter.has_room_for_turn()

    @property
    def wants_run(self) -> bool:
        """Whether such a run has something to report."""
        return self.may_wake and self._speaker.has_anything

    def begin(self, prompt: Prompt | None) -> None:
        """Start a run; one without a prompt counts for the limits of the last."""
        is_woken = prompt is None and self.last_ending == "completed" and self.wants_run
        self._meter.start(goes_on=is_woken)
        self._meter.turns += is_woken

    async def submit_prompt(
        self, prompt: Prompt, message_id: str | None, options: LoopOptions
    ) -> RunResult | None:
        """Send the prompt through hooks and add it; an ending if they refuse it."""
        if options.is_sub_agent:
            self._speaker.say(prompt, message_id=message_id)
            return None
        outcome = await self._hooks.fire_prompt_submit(prompt)
        refusal = outcome.blocked or outcome.stop
        if refusal is not None:
            return RunResult("prompt_blocked", refusal, is_error=True, errors=(refusal,))
        self._speaker.say(prompt, message_id=message_id)
        self._speaker.remind(outcome.messages)
        return None

    async def handle_results(
        self,
        turn: ModelTurn,
        results: Sequence[ToolResult],
        guard: LoopGuard,
        rest: ContinuationBudget,
        options: LoopOptions,
        *,
        has_prompt: bool = False,
    ) -> RunResult | None:
        """After results: the end, or a further message to the model."""
        if open_calls := self._conversation.open_calls:
            said = self._conversation.last_text
            waiting = sum(result.code == AnswerPending.code for result in results)
            return (
                make_pending_result(waiting, said, has_prompt=has_prompt)
                if waiting
                else make_deferred_result(open_calls[0], said)
            )
        wishes: list[str] = []
        if self._output is not None and self._output.heard(results):
            wishes = await self._ask_to_stop(self._output.text, rest, options)
            if not wishes and not (_waits(options) and await self._has_more(rest, options)):
                return RunResult("completed", self._output.text, output=self._output.value)
            self._output.reject()
            wishes.append(reminders.NOT_ACCEPTED)
        stop = next((result.stops for result in results if result.stops), None)
        if stop is not None:
            return RunResult("hook_stopped", stop)
        if self._output is not None and self._output.is_hopeless:
            return self._output.ending()
        for text in collect_messages(results):
            self._speaker.say(text, synthetic=True, is_beside_results=True)
        self._speaker.remind(wishes)
        made = {call.id for call in turn.calls}
        circle = guard.watch(turn.calls, [result for result in results if result.id in made])
        if circle is not None:
            self._tell(Nudged(circle.sentence))
            if circle.action == "stop":
                return RunResult("loop", circle.sentence, is_error=True, errors=(circle.sentence,))
            self._speaker.remind([f"You repeat yourself: {circle.sentence}"])
        self._speaker.flush_queue()
        return None

    async def handle_final_answer(
        self, turn: ModelTurn, rest: ContinuationBudget, options: LoopOptions
    ) -> RunResult | None:
        """An answer without calls ends the run, unless there is a reason to continue."""
        if (unfinished := reminders.UNFINISHED.get(turn.stop_reason)) and rest.may_go_on():
            self._speaker.remind([unfinished])
            return None
        if await self._has_more(rest, options) and self._speaker.flush_queue():
            self._meter.turns += 1
            return None
        if turn.stop_reason == "refusal":
            said = self._conversation.last_text or "The model refused to answer."
            return RunResult("refused", said, stop_reason="refusal", is_error=True, errors=(said,))
        if self._output is not None and not self._output.is_given:
            return self._demand_output(self._output)
        said = self._conversation.last_text
        wishes = await self._ask_to_stop(said, rest, options)
        self._speaker.remind(wishes)
        if wishes or (self._speaker.has_waiting and self._speaker.flush_queue()):
            return None
        return RunResult("completed", said, stop_reason=turn.stop_reason)

    def _demand_output(self, output: FinalOutput) -> RunResult | None:
        """Ask for the answer in its required form, a few times."""
        if output.is_hopeless:
            return output.ending()
        self._speaker.remind([output.demand()])
        return None

    async def _has_more(self, rest: ContinuationBudget, options: LoopOptions) -> bool:
        """Whether there are further messages, after waiting for background work.

        Lines of an endless watch extend a run only as long as it would wait for them.
        """
        speaker = self._speaker
        if not self._meter.has_room_for_turn():
            return speaker.has_waiting
        if _waits(options):
            now = time.monotonic()
            rest.idle_since = now if rest.idle_since is None else rest.idle_since
            idle_s = now - rest.idle_since
            agents_s = options.wait_for_agents_s - idle_s
            commands_s = options.wait_for_commands_s - idle_s
            if not speaker.has_news and max(agents_s, commands_s) > 0:
                await speaker.wait_for_work(agents_s, commands_s)
            if speaker.has_news:
                rest.idle_since = None
            elif max(agents_s, commands_s) <= 0:
                return False
        # Lines alone begin a run of their own, so that a person's words come between.
        is_for_lines = _waits(options) or options.is_sub_agent
        return speaker.has_anything if is_for_lines else speaker.has_news

    async def _ask_to_stop(
        self, answer: str, rest: ContinuationBudget, options: LoopOptions
    ) -> list[str]:
        """Tasks of Stop hooks before the answer is final; limited in number."""
        outcome = await self._hooks.ending(
            answer,
            is_again=rest.stop_blocks > 0,
            is_sub_agent=options.is_sub_agent,
        )
        # What a hook adds for the model would not be heard if the work ended here.
        wishes = [*outcome.messages, *filter(None, (outcome.blocked,))]
        return wishes if wishes and outcome.stop is None and rest.use_stop_block() else []


def _waits(options: LoopOptions) -> bool:
    """Whether a run that could end waits for background work."""
    return max(options.wait_for_agents_s, options.wait_for_commands_s) > 0
