"""Hooks around one agent's run: its prompts, its end, its failure, and questions on the way."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

from handaxe.agent.events import AgentEvent, Told
from handaxe.agent.input_messages import Prompt, extract_prompt_text
from handaxe.agent.loop_context import LoopContext
from handaxe.agent.run_hooks__hook_reports import FailedHooks
from handaxe.agent.run_hooks__occasions import STOP_ERRORS, build_stop_details
from handaxe.contract.events import CallAsked, Event, HookRan
from handaxe.contract.ports.model import ModelFailed
from handaxe.hooks.notify import notify_hooks
from handaxe.hooks.outcome import Outcome

_UNHEARD = frozenset(
    {
        "ConfigChange", "DirectoryAdded", "Elicitation", "ElicitationResult", "InstructionsLoaded",
        "MessageDisplay", "Notification", "PostCompact", "PreCompact", "SessionEnd", "StopFailure",
        "WorktreeCreate", "WorktreeRemove",
    }
)  # fmt: skip
"""Events at which a hook's words to the person are not passed on."""
_TOLD_HERE = frozenset({"UserPromptSubmit", "Stop", "SubagentStop"})
"""Events of the run itself: what is said to them is told at once, before the run can end."""


class RunHooks:
    """Asks hooks on behalf of one loop, and tells people what they say."""

    def __init__(self, workplace: LoopContext, show: Callable[[AgentEvent], None]) -> None:
        self._workplace = workplace
        self._show = show
        self._failed = FailedHooks()

    async def fire_prompt_submit(self, prompt: Prompt) -> Outcome:
        """What they say to a prompt; it gets an id that all later events of its turn carry."""
        workplace = self._workplace
        workplace.among.prompt_id = str(uuid4())
        title = workplace.title()
        named: dict[str, Any] = {} if title is None else {"session_title": title}
        outcome = await workplace.fire(
            "UserPromptSubmit", prompt=extract_prompt_text(prompt), **named
        )
        wanted = outcome.extra.get("sessionTitle")
        if isinstance(wanted, str):
            workplace.rename(wanted)
        self._tell((*outcome.told, *self._failed.new(outcome.notes)))
        return outcome

    async def ending(self, last_text: str, *, is_again: bool, is_sub_agent: bool) -> Outcome:
        """What they say to the end of the work."""
        outcome = await self._workplace.fire(
            "SubagentStop" if is_sub_agent else "Stop",
            stop_hook_active=is_again,
            last_assistant_message=last_text,
            **build_stop_details(self._workplace.among),
        )
        self._tell((*outcome.told, *self._failed.new(outcome.notes)))
        return outcome

    async def failed(self, failed: ModelFailed) -> None:
        """The model gave no answer; nothing they say matters."""
        await self._workplace.fire(
            "StopFailure",
            error=STOP_ERRORS[failed.failure],
            error_details=failed.sentence,
            last_assistant_message=failed.sentence,
        )

    def handle_event(self, event: Event) -> None:
        """Something happened in the session while the agent works."""
        if isinstance(event, HookRan):
            self._report_run(event)
        elif isinstance(event, CallAsked):
            self._asked(event)

    def _asked(self, event: CallAsked) -> None:
        """Let them know that a person is asked."""
        what = {"notification_type": "permission_prompt", "title": "Permission needed"}
        said = f"{event.tool} needs your permission. {event.reason}"
        notify_hooks(self._workplace.among, "Notification", message=said, **what)

    def _report_run(self, event: HookRan) -> None:
        """Show what a hook has to say to the person, where anybody listens, and its failures."""
        if event.event in _TOLD_HERE and not event.in_background:
            return
        self._tell(self._failed.heard(event))
        if not event.in_background and event.event not in _UNHEARD:
            self._tell(event.told)

    def _tell(self, sentences: tuple[str, ...]) -> None:
        for sentence in sentences:
            self._show(Told(sentence))
