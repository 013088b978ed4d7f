"""Whether a run begins, and goes on after an answer; what the model is told then."""

from collections.abc import Callable, Sequence

from handaxe.agent import reminders
from handaxe.agent.conversation import AgentConversation
from handaxe.agent.events import AgentEvent, Nudged
from handaxe.agent.input_messages import InputMessages, Prompt
from handaxe.agent.limits import ContinuationBudget, LoopOptions
from handaxe.agent.loop_guard import LoopGuard
from handaxe.agent.run_hooks import RunHooks
from handaxe.agent.structured_output import FinalOutput, RunResult, make_deferred_result
from handaxe.agent.turn import ModelTurn
from handaxe.contract.result import ToolResult
from handaxe.schema.user_turn import collect_messages


class RunContinuation:
    """Decides on a prompt and on each answer whether the run ends; if not, tells the model why."""

    def __init__(
        self,
        conversation: AgentConversation,
        speaker: InputMessages,
        hooks: RunHooks,
        tell: Callable[[AgentEvent], None],
        output: FinalOutput | None,
    ) -> None:
        self._conversation = conversation
        self._speaker = speaker
        self._hooks = hooks
        self._tell = tell
        self._output = output

    async def submit_prompt(
        self, prompt: Prompt, message_id: str | None, options: LoopOptions
    ) -> RunResult | None:
        """Let hooks see the prompt, then say it; an ending if they refuse it."""
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
    ) -> RunResult | None:
        """What follows on results: the end, or something more to say to the model."""
        if (call := self._conversation.put_off) is not None:
            return make_deferred_result(call, self._conversation.last_text)
        wishes: list[str] = []
        if self._output is not None and self._output.heard(results):
            wishes = await self._ask_to_stop(self._output.text, rest, options)
            if not wishes:
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
        circle = guard.watch(turn.calls, results)
        if circle is not None:
            self._tell(Nudged(circle.sentence))
            if circle.action == "stop":
                return RunResult("loop", circle.sentence, is_error=True, errors=(circle.sentence,))
            self._speaker.remind([f"You go in circles: {circle.sentence}"])
        self._speaker.flush_queue()
        return None

    async def handle_final_answer(
        self, turn: ModelTurn, rest: ContinuationBudget, options: LoopOptions
    ) -> RunResult | None:
        """An answer without calls ends the run, unless somebody has a reason to go on."""
        if (unfinished := reminders.UNFINISHED.get(turn.stop_reason)) and rest.may_go_on():
            self._speaker.remind([unfinished])
            return None
        if self._speaker.flush_queue() or await self._speaker.wait_for_work(
            options.wait_for_agents_s
        ):
            return None
        if turn.stop_reason == "refusal":
            said = self._conversation.last_text or "The model refused to answer."
            return RunResult("refused", said, stop_reason="refusal", is_error=True, errors=(said,))
        if self._output is not None and not self._output.is_given:
            if self._output.is_hopeless:
                return self._output.ending()
            self._speaker.remind([self._output.demand()])
            return None
        said = self._conversation.last_text
        wishes = await self._ask_to_stop(said, rest, options)
        self._speaker.remind(wishes)
        return None if wishes else RunResult("completed", said, stop_reason=turn.stop_reason)

    async def _ask_to_stop(
        self, answer: str, rest: ContinuationBudget, options: LoopOptions
    ) -> list[str]:
        """What hooks want done before the answer is the last one; not for ever."""
        outcome = await self._hooks.ending(
            answer,
            is_again=rest.stop_blocks > 0,
            is_sub_agent=options.is_sub_agent,
        )
        # What a hook adds for the model would not be heard if the work ended here.
        wishes = [*outcome.messages, *filter(None, (outcome.blocked,))]
        return wishes if wishes and outcome.stop is None and rest.use_stop_block() else []
