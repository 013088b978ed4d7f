"""`handaxe -p`: one prompt, one answer; or a whole conversation with a program."""

import argparse
import asyncio
import os
import select
import stat
import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from typing import Any

from handaxe.agent.events import AgentEvent, RunFinished, ToolAnswered, TurnEnded
from handaxe.agent.hook_reports import BEGINNING, failure_of
from handaxe.app.agent_api import Agent
from handaxe.app.configuration import Configuration
from handaxe.app.displaying import displayed
from handaxe.app.slash_commands import expanded
from handaxe.contract.events import Event, HookRan
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.frontends.cli.agent_modes import is_set
from handaxe.frontends.cli.agent_opening import AgentOpener, NoConversation, cost_of
from handaxe.frontends.cli.exits import DONE, FAILED, HUNG_UP, INTERRUPTED, REFUSED, TERMINATED
from handaxe.frontends.cli.opening import read_settings_option
from handaxe.frontends.cli.paint import tell_person, write_out
from handaxe.frontends.cli.telling import Teller, aside, teller_of
from handaxe.frontends.line_input import lines_of, pieces
from handaxe.frontends.signals import HeardSignals, list_ending_signals
from handaxe.frontends.stream_json.codec import Shown
from handaxe.frontends.stream_json.endings import Lookups
from handaxe.frontends.stream_json.lines import LineWriter
from handaxe.frontends.stream_json.own_commands import done_here
from handaxe.frontends.stream_json.rewinding import rewind
from handaxe.frontends.stream_json.serve import Brought, Conversation, Serving, codec_of
from handaxe.storage.home import data_home
from handaxe.text.counting import counted
from handaxe.text.framing import neutralize
from handaxe.text.visible import show

MAX_INPUT_BYTES = 10_000_000
_PATIENCE_S = 3.0
_GRACE_S = 5.0
_PLANNED = "ExitPlanMode"
_RESUME_VARIABLE = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"
_GO_ON = "Continue from where you left off."
COMMANDS_GRACE_S = 5.0
"""How long commands in the background may still work when the answer was given."""


def run_headless(arguments: argparse.Namespace) -> int:
    """Do it; the exit code."""
    _check(arguments)
    try:
        opener = AgentOpener(arguments)
    except NoConversation as missing:
        tell_person(missing)
        return FAILED
    opener.waits_for_servers = True
    try:
        if arguments.rewind_files is not None:
            return asyncio.run(_rewind(opener, arguments.rewind_files))
        if arguments.init_only:
            return _Ending().run(lambda _: _set_up(opener, verbose=arguments.verbose))
        if arguments.input_format == "stream-json":
            return _Ending().run(lambda ending: _converse(arguments, opener, ending))
        prompt = _prompt(arguments)
        return _Ending().run(lambda ending: _answer(arguments, opener, prompt, ending))
    finally:
        opener.clean_up()


class _Ending:
    """What ends a run from outside: the first signal asks it to stop, a second one makes it."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.suspend: Callable[[], object] = lambda: None
        self.interrupt: Callable[[], object] = lambda: None
        self._task: asyncio.Task[int] | None = None

    def run(self, work: "Callable[[_Ending], Coroutine[Any, Any, int]]") -> int:
        """Run to the end; the exit code."""
        with HeardSignals(*list_ending_signals()) as signals:
            return asyncio.run(self._run(work, signals))

    async def _run(
        self, work: "Callable[[_Ending], Coroutine[Any, Any, int]]", signals: HeardSignals
    ) -> int:
        self._task = asyncio.ensure_future(work(self))
        signals.tell(lambda number: self._end(128 + number))
        try:
            code = await self._task
        except asyncio.CancelledError:
            code = FAILED
        return self.code if self.code is not None else code

    def _end(self, code: int) -> None:
        assert self._task is not None
        if self.code is not None:
            self._task.cancel()
            return
        self.code = code
        is_running = self.interrupt() if code == INTERRUPTED else self.suspend()
        if is_running:
            asyncio.get_running_loop().call_later(_GRACE_S, self._task.cancel)
        else:
            self._task.cancel()


async def _converse(arguments: argparse.Namespace, opener: AgentOpener, ending: _Ending) -> int:
    """Serve a program until it closes its side."""
    conversation = Conversation(_serving(arguments, opener), LineWriter())
    ending.suspend = ending.interrupt = conversation.suspend
    try:
        await conversation.serve(lines_of(sys.stdin.fileno()))
    finally:
        await conversation.close()
    last = conversation.last
    return FAILED if last is not None and last.is_error else DONE


async def _rewind(opener: AgentOpener, message_id: str) -> int:
    """Put files back to how they were when a message was said."""
    session = opener.open_session(Brought())
    try:
        told = await rewind(session, message_id)
    finally:
        await session.close()
    changed = told["filesChanged"]
    aside(f"{counted(len(changed), 'file')} put back" + (":" if changed else "."))
    write_out("".join(f"{show(path)}\n" for path in changed))
    return DONE


async def _set_up(opener: AgentOpener, *, verbose: bool) -> int:
    """Let hooks prepare the project; nobody is asked anything, and no model is needed.

    There is nothing else to do, so a hook that failed is a run that failed.
    """
    session = opener.open_session(Brought())
    failures: list[str] = []

    def hear(event: Event) -> None:
        if not isinstance(event, HookRan) or event.event not in BEGINNING:
            return
        failure = failure_of(event)
        if failure is not None:
            failures.append(failure)
            aside(failure)
        elif verbose:
            what = event.reason or " ".join((*event.told, *event.messages)) or event.outcome
            aside(f"{event.event} hook {event.hook!r}: {what}")

    session.subscribe(hear)
    try:
        if session.collaborators.opening is not None:
            await session.collaborators.opening()
        await asyncio.sleep(0)
    finally:
        await session.close()
    return FAILED if failures else DONE


async def _answer(
    arguments: argparse.Namespace, opener: AgentOpener, prompt: str | None, ending: _Ending
) -> int:
    """Answer one prompt, in the format that was asked for."""
    agent = opener.open(Brought())
    ending.suspend, ending.interrupt = agent.suspend, agent.interrupt
    teller = teller_of(arguments, codec_of(agent, _serving(arguments, opener)))
    calls = _Calls()
    final: RunFinished | None = None
    try:
        if opener.permission_tool is not None:
            await opener.permission_tool.check()
        if prompt is not None and (done := await done_here(agent, prompt)) is not None:
            return _told(done, teller)
        prompts = await _prompts(agent, prompt, teller)
        stop = agent.session.subscribe(teller.session_event)
        for said in prompts:
            is_last = said is prompts[-1]
            shown = displayed(agent.session.collaborators, agent.run(said), by_lines=False)
            async with aclosing(shown) as events:
                async for event in events:
                    calls.count(event)
                    if isinstance(event, RunFinished):
                        final = event
                        await asyncio.sleep(0)
                        if ending.code in {TERMINATED, HUNG_UP}:
                            break
                    teller.event(event, is_last=is_last)
            if final is not None and final.is_error:
                break
        else:
            if arguments.prompt_suggestions:
                await _suggest(agent, final, teller)
            await agent.session.jobs.wait_for_commands(COMMANDS_GRACE_S)
        stop()
    finally:
        await agent.close()
        await agent.session.close()
    return calls.exit_code(final)


async def _suggest(agent: Agent, final: RunFinished | None, teller: Teller) -> None:
    from handaxe.app.suggesting import suggested_prompt

    if (text := await suggested_prompt(agent, final)) is not None:
        teller.suggestion(text)


def _told(done: list[AgentEvent], teller: Teller) -> int:
    """Tell of a prompt that never reached the model; the exit code."""
    for event in done:
        teller.event(event)
    last = done[-1]
    return FAILED if isinstance(last, RunFinished) and last.is_error else DONE


async def _prompts(agent: Agent, prompt: str | None, teller: Teller) -> list[str | None]:
    """What is said to the agent: first what a hook at the start wants said, then the prompt."""
    stop = agent.session.subscribe(teller.hook_event)
    first = await agent.begin()
    await asyncio.sleep(0)
    stop()
    if first is not None and prompt is None:
        return [first]
    said = await _expanded(agent, prompt)
    return [said] if first is None else [first, said]


async def _expanded(agent: Agent, prompt: str | None) -> str | None:
    if prompt is None:
        if not agent.messages:
            raise SetupError("There is nothing to go on with. Say what to do: -p PROMPT.")
        return None
    try:
        return await expanded(agent.session, prompt)
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None


class _Calls:
    """What became of the calls, for an exit code that tells the truth."""

    def __init__(self) -> None:
        self._were_refused: list[bool] = []
        self._is_over = False

    def count(self, event: AgentEvent) -> None:
        """Take note of the results of one answer; the next answer's count instead of them."""
        if isinstance(event, ToolAnswered):
            is_refused = (event.result.code or "").startswith(("permission.", "hook."))
            if is_refused and event.result.tool == _PLANNED and self._were_refused:
                # Looking around and coming to a plan is all that plan mode is for.
                return
            if self._is_over:
                self._were_refused, self._is_over = [], False
            self._were_refused.append(is_refused)
        elif isinstance(event, TurnEnded):
            self._is_over = True

    def exit_code(self, final: RunFinished | None) -> int:
        """3 where a refusal is what it came to: nothing that was tried last was done."""
        if final is None or final.is_error:
            is_refusal = final is not None and final.terminal_reason == "prompt_blocked"
            return REFUSED if is_refusal else FAILED
        return REFUSED if self._were_refused and all(self._were_refused) else DONE


def _serving(arguments: argparse.Namespace, opener: AgentOpener) -> Serving:
    return Serving(
        open_agent=opener.open,
        open_model=opener.model,
        shown=Shown(
            partial_messages=arguments.include_partial_messages,
            user_messages=arguments.replay_user_messages,
            hook_events=arguments.include_hook_events,
            agents_text=arguments.forward_subagent_text
            or os.environ.get("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT") == "1",
        ),
        asks=arguments.permission_prompt_tool == "stdio",
        servers=opener.servers,
        lookups=Lookups(cost_of=cost_of),
        suggests=arguments.prompt_suggestions,
        going_on=_going_on() if is_set(_RESUME_VARIABLE) else None,
    )


def _going_on() -> str:
    """What an agent is told that was ended from outside in the middle of a turn."""
    return os.environ.get("CLAUDE_CODE_RESUME_PROMPT", "").strip() or _GO_ON


def _check(arguments: argparse.Namespace) -> None:
    """Refuse combinations that could only disappoint."""
    is_stream = arguments.input_format == "stream-json"
    if is_stream and arguments.output_format != "stream-json":
        raise SetupError("--input-format stream-json needs --output-format stream-json.")
    if is_stream and arguments.prompt:
        raise SetupError("With --input-format stream-json the prompt comes on standard input.")
    is_resumed = arguments.continue_ or arguments.resume is not None
    for name in ("resume_session_at", "rewind_files"):
        if getattr(arguments, name) is not None and not is_resumed:
            raise SetupError(f"--{name.replace('_', '-')} needs --resume or --continue.")
    if arguments.resume_drops_turn is not None and arguments.resume_session_at is None:
        raise SetupError("--resume-drops-turn needs --resume-session-at.")
    tool = arguments.permission_prompt_tool
    if tool == "stdio" and not is_stream:
        raise SetupError("--permission-prompt-tool stdio needs --input-format stream-json.")
    if arguments.prompt_suggestions and arguments.output_format != "stream-json":
        raise SetupError("--prompt-suggestions needs --output-format stream-json.")


def _prompt(arguments: argparse.Namespace) -> str | None:
    """The argument and what is piped in; None goes on with an old conversation."""
    words = " ".join(arguments.prompt).strip()
    piped = _piped(wait=not words).strip()
    prompt = "\n\n".join(part for part in (words, piped) if part)
    if prompt:
        return prompt
    if arguments.resume is not None or arguments.continue_ or _begins_itself(arguments):
        return None
    raise SetupError("Say what to do: `handaxe -p PROMPT`, or pipe the prompt in.")


def _begins_itself(arguments: argparse.Namespace) -> bool:
    """Whether a hook at the start may have the first words."""
    configuration = Configuration(
        os.path.realpath(arguments.root),
        home=data_home(),
        given=read_settings_option(arguments.settings),
        sources=arguments.setting_sources,
        trusted=True if arguments.trust_project else None,
    )
    return any(group.event == "SessionStart" for group in configuration.merged.hooks)


def _piped(*, wait: bool) -> str:
    """What stands on standard input; a pipe that stays silent beside a prompt is not waited for."""
    try:
        fd = sys.stdin.fileno()
        kind = os.fstat(fd).st_mode
    except (OSError, ValueError, AttributeError):
        return ""
    if sys.stdin.isatty():
        return ""
    if not wait and not stat.S_ISREG(kind):
        ready, _, _ = select.select([fd], [], [], _PATIENCE_S)
        if not ready:
            aside("nothing came on standard input; going on without it.")
            return ""
    data = bytearray()
    for piece in pieces(fd):
        data += piece
        if len(data) > MAX_INPUT_BYTES:
            raise SetupError("More than 10 MB on standard input. Put it into a file instead.")
    try:
        # Files and commands speak here, never the runtime.
        return neutralize(data.decode())
    except UnicodeDecodeError:
        raise SetupError("What came on standard input is not UTF-8 text.") from None
