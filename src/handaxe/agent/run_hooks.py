"""Hooks around one agent's run: prompts, end, failure, and permission questions."""

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

from handaxe.agent.events import AgentEvent, Told
from handaxe.agent.input_messages import Prompt, extract_prompt_text
from handaxe.agent.loop_context import LoopContext
from handaxe.contract.events import CallAsked, Event, HookRan
from handaxe.contract.ports.model import Failure, ModelFailed
from handaxe.hooks.notify import notify_hooks
from handaxe.hooks.outcome import Outcome
from handaxe.pipeline.context import PipelineContext
from handaxe.session.jobs import Jobs

_UNHEARD = frozenset(
    {
        "ConfigChange", "DirectoryAdded", "Elicitation", "ElicitationResult", "InstructionsLoaded",
        "MessageDisplay", "Notification", "PostCompact", "PreCompact", "SessionEnd", "StopFailure",
        "WorktreeCreate", "WorktreeRemove",
    }
)  # fmt: skip
"""Events at which hook messages to the user are dropped."""
_TOLD_HERE = frozenset({"UserPromptSubmit", "Stop", "SubagentStop"})
"""Events of the run itself: hook messages are reported at once, before the run can end."""


class RunHooks:
    """Runs hooks for one loop, and reports their messages."""

    def __init__(self, workplace: LoopContext, show: Callable[[AgentEvent], None]) -> None:
        self._workplace = workplace
        self._show = show
        self._failed = FailedHooks()

    async def fire_prompt_submit(self, prompt: Prompt) -> Outcome:
        """The outcome for a prompt; the prompt gets an id for all later events of its turn."""
        workplace = self._workplace
        workplace.pipeline_context.prompt_id = str(uuid4())
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
        """The outcome for the end of the work."""
        outcome = await self._workplace.fire(
            "SubagentStop" if is_sub_agent else "Stop",
            stop_hook_active=is_again,
            last_assistant_message=last_text,
            **build_stop_details(self._workplace.pipeline_context),
        )
        self._tell((*outcome.told, *self._failed.new(outcome.notes)))
        return outcome

    async def failed(self, failed: ModelFailed) -> None:
        """The model gave no answer; the outcome is ignored."""
        await self._workplace.fire(
            "StopFailure",
            error=STOP_ERRORS[failed.failure],
            error_details=failed.sentence,
            last_assistant_message=failed.sentence,
        )

    def handle_event(self, event: Event) -> None:
        """Handle an event of the session while the agent works."""
        if isinstance(event, HookRan):
            self._report_run(event)
        elif isinstance(event, CallAsked):
            self._asked(event)

    def _asked(self, event: CallAsked) -> None:
        """Run the hooks for a permission prompt."""
        what = {"notification_type": "permission_prompt", "title": "Permission needed"}
        said = f"{event.tool} needs your permission. {event.reason}"
        notify_hooks(self._workplace.pipeline_context, "Notification", message=said, **what)

    def _report_run(self, event: HookRan) -> None:
        """Report a hook's message to the user, and its failures."""
        if event.event in _TOLD_HERE and not event.in_background:
            return
        self._tell(self._failed.heard(event))
        if not event.in_background and event.event not in _UNHEARD:
            self._tell(event.told)

    def _tell(self, sentences: tuple[str, ...]) -> None:
        for sentence in sentences:
            self._show(Told(sentence))


SLOW_MS: Final = 1_000.0
SLOW_TOTAL_MS: Final = 10_000.0
"""Many short waits count as a long one too."""
BEGINNING: Final = frozenset({"Setup", "SessionStart"})
"""Events before any run, which no run can report."""
_MAY_TAKE_LONG = frozenset({"Setup", "WorktreeCreate", "SessionEnd"})
"""Events with requested or background work, which may take long."""
_FAILED = frozenset({"failed", "timed_out"})


def describe_hook_failure(event: HookRan) -> str | None:
    """A message about a failed hook; None if it did not fail."""
    if event.outcome not in _FAILED:
        return None
    return f"{event.event} hook error: {event.hook!r} failed: {event.reason}."


class FailedHooks:
    """Reports each failure once, although a hook may fail at every call."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def heard(self, event: HookRan) -> tuple[str, ...]:
        """New messages about one run of a hook."""
        failure = describe_hook_failure(event)
        return () if failure is None else self.new((failure,))

    def new(self, sentences: tuple[str, ...]) -> tuple[str, ...]:
        """The messages that were not reported before."""
        fresh = tuple(sentence for sentence in sentences if sentence not in self._told)
        self._told.update(fresh)
        return fresh


class SlowHooks:
    """Adds up the duration of hooks, and reports each slow one once."""

    def __init__(self) -> None:
        self._waited_ms: dict[tuple[str, str], float] = {}
        self._runs: dict[tuple[str, str], int] = {}
        self._told: set[tuple[str, str]] = set()

    def heard(self, event: HookRan) -> str | None:
        """A message when a hook has become slow."""
        if event.in_background or event.event in _MAY_TAKE_LONG:
            return None
        hook = (event.event, event.hook)
        total = self._waited_ms[hook] = self._waited_ms.get(hook, 0.0) + event.duration_ms
        runs = self._runs[hook] = self._runs.get(hook, 0) + 1
        is_slow = event.duration_ms >= SLOW_MS or total >= SLOW_TOTAL_MS
        if not is_slow or hook in self._told:
            return None
        self._told.add(hook)
        took = f"{event.duration_ms / 1000:.1f} s"
        if event.duration_ms < SLOW_MS:
            took = f"{total / 1000:.1f} s in {runs} runs"
        return (
            f"The {event.event} hook {event.hook!r} took {took}, and all work waited for "
            'it. If it only observes, set `"async": true`.'
        )


MAX_TEXT_CHARS = 1_000
STOP_ERRORS: dict[Failure, str] = {
    "authentication": "authentication_failed",
    "not_found": "model_not_found",
    "rate_limited": "rate_limit",
    "overloaded": "overloaded",
    "too_long": "invalid_request",
    "bad_request": "invalid_request",
    "unreachable": "server_error",
    "broken_stream": "server_error",
    "timed_out": "server_error",
    "script_ended": "unknown",
}
_KINDS = {"bash": "shell", "agent": "subagent", "monitor": "monitor"}


def build_stop_details(context: PipelineContext) -> dict[str, Any]:
    """The fields for hooks at the end of an agent."""
    # Nothing here wakes a session at a time; the list has its place all the same.
    told: dict[str, Any] = {"background_tasks": _list_running_jobs(context), "session_crons": []}
    if context.agent_id is not None:
        told["agent_transcript_path"] = context.agent_transcript_path
    return told


def _list_running_jobs(context: PipelineContext) -> list[dict[str, Any]]:
    jobs: Jobs | None = context.ports.get(Jobs)
    if jobs is None:
        return []
    told: list[dict[str, Any]] = []
    for state in jobs.running():
        entry = {
            "id": state.job_id,
            "type": _KINDS.get(state.kind, state.kind),
            "status": state.status,
            "description": _clip_text(state.description),
        }
        if state.command:
            entry["command"] = _clip_text(state.command)
        if state.agent_type:
            entry["agent_type"] = state.agent_type
        told.append(entry)
    return told


def _clip_text(text: str) -> str:
    more = len(text) - MAX_TEXT_CHARS
    return f"{text[:MAX_TEXT_CHARS]}… [+{more} chars]" if more > 0 else text
