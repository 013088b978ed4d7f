"""Run the matching hooks in parallel, each with its timeout, and merge their outcomes.

An event is plain data, the same for functions, programs and servers. The outcome depends on the
configured order, not on which hook answers first.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, cast

import msgspec

from handaxe.contract.call import CURRENT_CALL
from handaxe.contract.cancellation import is_external_stop
from handaxe.contract.decision import Verdict
from handaxe.contract.events import HookOutcome, HookRan
from handaxe.contract.faults import describe_error
from handaxe.contract.ports.hooks import HookModels, HookPrograms, HookUnreachable
from handaxe.contract.ports.mcp_servers import McpServers
from handaxe.hooks.config import (
    AgentHook,
    CallableHook,
    CommandHook,
    ConfiguredHook,
    Hook,
    HookConfig,
    PromptHook,
)
from handaxe.hooks.env_file import take_variables
from handaxe.hooks.event_types import (
    AGENT_TIMEOUT_S,
    CALLABLE_TIMEOUT_S,
    OCCASIONS,
    PROMPT_TIMEOUT_S,
)
from handaxe.hooks.external import ExternalHooks, HookPolicy
from handaxe.hooks.outcome import NOTHING, WATCH_PATHS, Outcome, merge_outcomes
from handaxe.hooks.output import InvalidHookOutput, Keep, from_value, sanitize_outcome

MAX_RUNNING = 8
MAX_WAITING = 256
GRACE_S = 1.5
"""How long closing waits for running background hooks."""
PREPARATION_S = 10.0
"""How long a command waits for programs that may set variables for it."""


class BackgroundHooks:
    """The running background hooks."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(MAX_RUNNING)

    @property
    def is_full(self) -> bool:
        """Whether the maximum is reached."""
        return len(self._tasks) >= MAX_RUNNING + MAX_WAITING

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a background hook when its turn comes."""
        task = asyncio.get_running_loop().create_task(self._in_turn(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        """Wait briefly for running hooks, then end them."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=GRACE_S)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=GRACE_S)

    async def _in_turn(self, work: Coroutine[Any, Any, None]) -> None:
        # No call waits for it, so its calls are not nested.
        CURRENT_CALL.set(None)
        try:
            async with self._turns:
                await work
        finally:
            # Never started if its turn did not come; closing it keeps Python from complaining.
            work.close()


_VERDICTS: dict[Verdict, HookOutcome] = {"allow": "allowed", "ask": "asked", "deny": "denied"}


class HookRun(msgspec.Struct, frozen=True):
    """One hook's answer and its duration."""

    placed: ConfiguredHook
    outcome: Outcome
    took_ms: float
    problem: str | None = None
    timed_out: bool = False


def to_hook_event(heard: HookRun, call_id: str | None) -> HookRan:
    """The event that reports it."""
    placed, outcome = heard.placed, heard.outcome
    reason = heard.problem or outcome.blocked or outcome.stop
    if reason is None and outcome.decision is not None:
        reason = outcome.decision.reason
    return HookRan(
        event=placed.event,
        hook=placed.hook.name,
        matcher=placed.matcher,
        call_id=call_id,
        outcome=_classify_outcome(heard),
        reason=reason or "",
        input=outcome.input,
        messages=outcome.messages,
        told=outcome.told,
        sequence=outcome.sequence,
        in_background=placed.hook.in_background,
        duration_ms=heard.took_ms,
        skill=placed.skill,
    )


def _classify_outcome(heard: HookRun) -> HookOutcome:
    outcome = heard.outcome
    if heard.problem is not None:
        return "timed_out" if heard.timed_out else "failed"
    if outcome.blocked is not None or outcome.stop is not None:
        return "blocked" if outcome.blocked is not None else "stopped"
    if outcome.defers:
        return "deferred"
    if outcome.decision is not None:
        return _VERDICTS[outcome.decision.verdict]
    if outcome.input is not None or outcome.output is not msgspec.UNSET:
        return "changed"
    return "added" if outcome.messages or outcome.told else "silent"


Covers = Callable[[str], bool]
"""Whether a permission rule covers the call of an event."""

_log = logging.getLogger("handaxe.hooks")
_MAX_REMEMBERED = 1024


class HookDispatcher:
    """The configured hooks, and how they run."""

    def __init__(
        self,
        *,
        servers: Callable[[], McpServers | None],
        models: Callable[[], HookModels | None],
        say_late: Callable[[tuple[str, ...]], None],
        wake: Callable[[], None],
        emit: Callable[[HookRan], object] | None,
        keep: Keep | None,
        variables: dict[str, str],
    ) -> None:
        """`say_late` receives what background hooks have for the model.

        `wake` is called when that is urgent. `variables` are what hooks set for later commands.
        """
        self._variables = variables
        self._servers = servers
        self._models = models
        self._say_late = say_late
        self._wake = wake
        self._emit = emit
        self._keep = keep
        self._background = BackgroundHooks()
        self._preparing: set[asyncio.Task[None]] = set()
        self._spent: list[ConfiguredHook] = []
        self._spent_before: set[tuple[str, str, str, str]] = set()

    def configure(
        self, book: HookConfig, policy: HookPolicy, programs: HookPrograms | None
    ) -> None:
        """Replace the configured hooks."""
        by_event: dict[str, list[ConfiguredHook]] = {}
        for placed in book.placed:
            by_event.setdefault(placed.event, []).append(placed)
        self._by_event = by_event
        self._chosen: dict[object, tuple[ConfiguredHook, ...]] = {}
        self._programs = programs
        self._policy = policy
        closing = [_choose_timeout_s(placed) for placed in by_event.get("SessionEnd", ())]
        self._closing_s = policy.closing_s or max(closing, default=0.0)
        self._outside = ExternalHooks(
            programs, policy, self._servers, self._models, self._variables
        )

    def resume(self, ran: Iterable[HookRan]) -> None:
        """Restore which once-only hooks ran in an earlier run of the session."""
        self._spent_before = {(one.skill, one.event, one.matcher, one.hook) for one in ran}

    @property
    def events(self) -> frozenset[str]:
        """The events with configured hooks."""
        return frozenset(self._by_event)

    async def fire(
        self,
        event: dict[str, Any],
        *,
        aliases: tuple[str, ...] = (),
        covers: Covers | None = None,
        call_id: str | None = None,
        within_a_hook: bool = False,
    ) -> Outcome:
        """The merged outcome of all hooks for an event; a failing hook stops no other."""
        call_id = call_id or event.get("tool_use_id")
        now: list[ConfiguredHook] = []
        for placed in self._meant(event, aliases):
            if covers is not None and placed.hook.condition and not covers(placed.hook.condition):
                continue
            if within_a_hook and isinstance(placed.hook, AgentHook):
                # An agent that answers for a hook would otherwise wait for one of its own.
                continue
            if placed.may_be_once and placed.hook.once and self._is_spent(placed):
                continue
            if placed.hook.in_background:
                self._start(placed, event, call_id)
            else:
                now.append(placed)
        if not now:
            return NOTHING
        merged = NOTHING
        for heard in await self._ask_all(now, event):
            self._trace(heard, call_id)
            merged = merge_outcomes(merged, heard.outcome)
        self._prepare(merged, event["hook_event_name"])
        return merged

    def tell(self, event: dict[str, Any]) -> None:
        """Run hooks without waiting; what they add comes with a later result."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            # A host without a running event loop cannot run hooks.
            return
        if self._background.is_full:
            _log.warning("too many hooks are running; %s is skipped", event["hook_event_name"])
            return

        async def telling() -> None:
            self._say_late((await self.fire(event)).messages)

        task = self._background.start(telling())
        meant = self._meant(event, ()) if OCCASIONS[event["hook_event_name"]].prepares else ()
        if any(isinstance(placed.hook, CommandHook) for placed in meant):
            self._preparing.add(task)
            task.add_done_callback(self._preparing.discard)

    async def wait_for_variables(self) -> None:
        """Wait for running programs that may set variables for the next command."""
        if self._preparing:
            await asyncio.wait(self._preparing, timeout=PREPARATION_S)

    async def close(self) -> None:
        """End running hooks, after a short wait for background ones."""
        await self._background.close()
        if self._programs is not None:
            await self._programs.close()

    def _meant(self, event: dict[str, Any], aliases: tuple[str, ...]) -> tuple[ConfiguredHook, ...]:
        """The hooks for this event, without duplicates."""
        name = event["hook_event_name"]
        field = OCCASIONS[name].matched
        value = str(event.get(field, "")) if field else ""
        if name == "FileChanged":
            value = value.rpartition("/")[2]
        key = (name, value, aliases)
        meant = self._chosen.get(key)
        if meant is None:
            fitting = [p for p in self._by_event.get(name, ()) if p.fits((value, *aliases))]
            if len(self._chosen) >= _MAX_REMEMBERED:
                self._chosen.clear()
            meant = self._chosen[key] = _drop_repeats(fitting)
        return meant

    def _is_spent(self, placed: ConfiguredHook) -> bool:
        """Whether a once-only hook has run; marks it as run.

        Reloaded settings create new objects for the same hooks.
        """
        if (placed.skill, placed.event, placed.matcher, placed.hook.name) in self._spent_before:
            return True
        for earlier in self._spent:
            same_place = (earlier.event, earlier.matcher) == (placed.event, placed.matcher)
            if same_place and earlier.skill == placed.skill and earlier.hook == placed.hook:
                return True
        self._spent.append(placed)
        return False

    async def _ask_all(self, hooks: list[ConfiguredHook], event: dict[str, Any]) -> list[HookRun]:
        if len(hooks) == 1:
            return [await self._ask(hooks[0], event)]
        # A group waits for all of them, and takes all of them down with a cancelled call.
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(placed, event)) for placed in hooks]
        return [task.result() for task in tasks]

    async def _ask(self, placed: ConfiguredHook, event: dict[str, Any]) -> HookRun:
        """One hook's outcome; failures become outcomes too."""
        began = time.perf_counter()
        hook, name = placed.hook, placed.event
        problem: str | None = None
        timed_out = False
        outcome = NOTHING
        try:
            timeout_s = self._closing_s if name == "SessionEnd" else _choose_timeout_s(placed)
            if isinstance(hook, CallableHook):
                answer = await _call(hook.call, _copy(event), timeout_s)
                outcome = from_value(name, answer)
            else:
                outcome = await self._outside.ask(placed, event, timeout_s)
        except HookUnreachable as error:
            problem, timed_out = error.sentence, error.timed_out
        except InvalidHookOutput as error:
            problem = str(error)
        except BaseException as error:
            # A bug in a user's hook is an answer, not a crash.
            if is_external_stop(error):
                raise
            _log.warning("the hook %s failed", hook.name, exc_info=error)
            problem = f"{type(error).__name__}: {describe_error(error)}"
        if problem is not None:
            outcome = _make_failure(placed, problem)
        took_ms = round((time.perf_counter() - began) * 1000, 3)
        outcome = sanitize_outcome(outcome, placed, self._keep)
        return HookRun(placed, outcome, took_ms, problem, timed_out)

    def _start(self, placed: ConfiguredHook, event: dict[str, Any], call_id: str | None) -> None:
        """Run a hook in the background; its decision is ignored."""
        if self._background.is_full:
            problem = "too many hooks are waiting in the background"
            self._trace(HookRun(placed, NOTHING, 0.0, problem), call_id)
            return
        event = _copy(event)

        async def run() -> None:
            heard = await self._ask(placed, event)
            self._prepare(heard.outcome, placed.event)
            said = (*heard.outcome.messages, *heard.outcome.told)
            wakes = getattr(placed.hook, "async_rewake", False)
            urgent = heard.outcome.blocked if wakes else None
            self._say_late(said if urgent is None else (*said, urgent))
            if urgent is not None:
                self._wake()
            self._trace(heard, call_id)

        self._background.start(run())

    def _prepare(self, outcome: Outcome, event: str) -> None:
        """Store what hooks set for later."""
        if OCCASIONS[event].prepares:
            take_variables(self._variables, outcome.variables)
            if WATCH_PATHS in outcome.extra:
                self._policy.watch(outcome.extra[WATCH_PATHS])

    def _trace(self, heard: HookRun, call_id: str | None) -> None:
        if self._emit is not None:
            self._emit(to_hook_event(heard, call_id))


async def _call(hook: Hook, event: dict[str, Any], timeout_s: float) -> object:
    """The result of a Python hook; one that cannot be stopped is abandoned."""
    task = asyncio.ensure_future(_call_without_exit(hook, event))
    try:
        # Most hooks never wait: they are done in the task's first turn, and need no timer.
        await asyncio.sleep(0)
        if not task.done():
            await asyncio.wait((task,), timeout=timeout_s)
    except asyncio.CancelledError:
        _abandon(task)
        raise
    if not task.done():
        _abandon(task)
        sentence = f"it did not finish within {timeout_s:g} s and was stopped"
        raise HookUnreachable(sentence, timed_out=True)
    if task.cancelled():
        raise HookUnreachable("it cancelled itself")
    return task.result()


async def _call_without_exit(hook: Hook, event: dict[str, Any]) -> object:
    """The result of the hook; an exit exception in a task would end the event loop."""
    try:
        return await hook(event)
    except SystemExit as leaving:
        raise HookUnreachable(f"it tried to end the program (SystemExit: {leaving})") from None


def _abandon(task: asyncio.Future[Any]) -> None:
    task.cancel()
    # Later exceptions are ignored.
    task.add_done_callback(lambda over: over.cancelled() or over.exception())


def _choose_timeout_s(placed: ConfiguredHook) -> float:
    occasion, hook = OCCASIONS[placed.event], placed.hook
    standard = occasion.timeout_s
    if isinstance(hook, CallableHook):
        standard = min(standard, CALLABLE_TIMEOUT_S)
    elif isinstance(hook, PromptHook):
        standard = PROMPT_TIMEOUT_S
    elif isinstance(hook, AgentHook):
        standard = AGENT_TIMEOUT_S
    wanted = hook.timeout if hook.timeout is not None else standard
    return min(wanted, occasion.max_timeout_s or wanted)


def _make_failure(placed: ConfiguredHook, problem: str) -> Outcome:
    """The outcome of a failed hook: a note, or a refusal."""
    hook, occasion = placed.hook, OCCASIONS[placed.event]
    by_default = isinstance(hook, CallableHook) and occasion.guards
    if hook.on_failure == "closed" or (hook.on_failure is None and by_default):
        return Outcome(blocked=f"The hook {hook.name!r} failed: {problem}.")
    return Outcome(notes=(f"{placed.event} hook error: {hook.name!r} failed: {problem}.",))


def _drop_repeats(hooks: list[ConfiguredHook]) -> tuple[ConfiguredHook, ...]:
    kept: list[ConfiguredHook] = []
    for placed in hooks:
        hook = placed.hook
        may_repeat = hook.in_background or isinstance(hook, CallableHook)
        if may_repeat or all((e.hook, e.skill) != (hook, placed.skill) for e in kept):
            kept.append(placed)
    return tuple(kept)


def _copy(value: Any) -> Any:  # noqa: ANN401 - any plain data
    """A copy of plain data, so that no hook can change what others get."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in cast("dict[Any, Any]", value).items()}
    if isinstance(value, list):
        return [_copy(item) for item in cast("list[Any]", value)]
    return value
