"""`handaxe -p`: one prompt and its answer, or a conversation with a program."""

import argparse
import asyncio
import os
import select
import stat
import sys
from collections.abc import Callable, Coroutine
from contextlib import aclosing
from functools import partial
from typing import Any

import msgspec

from handaxe.agent.events import AgentEvent, FromAgent, RunFinished, ToolAnswered
from handaxe.agent.message_display import display_events
from handaxe.agent.run_hooks import BEGINNING, describe_hook_failure
from handaxe.app.agent import Agent
from handaxe.app.services.configuration import open_configuration
from handaxe.app.session import get_parts
from handaxe.app.slash_commands import expand_prompt
from handaxe.config.env_vars import is_env_true
from handaxe.contract.events import Event, HookRan
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.frontends.cli.agent_factory import AgentFactory, ConversationNotFound
from handaxe.frontends.cli.agent_options import parse_answers
from handaxe.frontends.cli.exit_codes import (
    DONE,
    FAILED,
    HUNG_UP,
    INTERRUPTED,
    REFUSED,
    TERMINATED,
    is_refused,
)
from handaxe.frontends.cli.headless_output import TextOutput, create_output, print_status
from handaxe.frontends.cli.option_values import compute_cost
from handaxe.frontends.cli.render import print_notice, write_out
from handaxe.frontends.cli.session_options import read_settings_option
from handaxe.frontends.line_input import read_chunks, stream_lines
from handaxe.frontends.signals import SignalListener, list_ending_signals
from handaxe.frontends.stream_json.codec import StreamOptions
from handaxe.frontends.stream_json.control_requests import rewind_files
from handaxe.frontends.stream_json.init_message import run_local_command
from handaxe.frontends.stream_json.json_lines import LineWriter
from handaxe.frontends.stream_json.result_message import MessageLookups
from handaxe.frontends.stream_json.server import (
    ClientOptions,
    ServeOptions,
    StreamConversation,
    build_codec,
)
from handaxe.storage.home import find_data_home
from handaxe.text.escape import format_count, to_visible_text
from handaxe.text.framing import neutralize

MAX_INPUT_BYTES = 10_000_000
_PATIENCE_S = 3.0
_GRACE_S = 5.0
_PLANNED = "ExitPlanMode"
_PROMPT_VARIABLE = "CLAUDE_CODE_RESUME_PROMPT"
_RESUME_VARIABLE = "CLAUDE_CODE_RESUME_INTERRUPTED_TURN"
_GO_ON = "Continue from where you left off."


def run_headless(arguments: argparse.Namespace) -> int:
    """Run without a terminal and return the exit code."""
    _check_options(arguments)
    try:
        opener = AgentFactory(arguments)
    except ConversationNotFound as missing:
        print_notice(missing)
        return FAILED
    opener.waits_for_servers = True
    try:
        if arguments.rewind_files is not None:
            return asyncio.run(_rewind(opener, arguments.rewind_files))
        if arguments.init_only:
            return _RunSignals().run(lambda _: _run_setup_hooks(opener, verbose=arguments.verbose))
        if arguments.input_format == "stream-json":
            return _RunSignals().run(lambda ending: _serve_stream(arguments, opener, ending))
        prompt = _read_prompt(arguments)
        return _RunSignals().run(lambda ending: _answer_prompt(arguments, opener, prompt, ending))
    finally:
        opener.clean_up()


class _RunSignals:
    """Signals of a run: the first one asks it to stop, the second one cancels it."""

    def __init__(self) -> None:
        self.code: int | None = None
        self.suspend: Callable[[], object] = lambda: None
        self.interrupt: Callable[[], object] = lambda: None
        self._task: asyncio.Task[int] | None = None

    def run(self, work: "Callable[[_RunSignals], Coroutine[Any, Any, int]]") -> int:
        """Run to the end and return the exit code."""
        with SignalListener(*list_ending_signals()) as signals:
            return asyncio.run(self._run(work, signals))

    async def _run(
        self, work: "Callable[[_RunSignals], Coroutine[Any, Any, int]]", signals: SignalListener
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


async def _serve_stream(
    arguments: argparse.Namespace, opener: AgentFactory, ending: _RunSignals
) -> int:
    """Serve a program until it closes its side."""
    # The program may send more input; background work starts turns of its own.
    serving = msgspec.structs.replace(
        _build_serve_options(arguments, opener), background_wait_s=opener.wait_s
    )
    opener.wait_s = 0.0, 0.0
    conversation = StreamConversation(serving, LineWriter())
    ending.suspend = ending.interrupt = conversation.suspend
    try:
        await conversation.serve(stream_lines(sys.stdin.fileno()))
    finally:
        await conversation.close()
    last = conversation.last
    return FAILED if last is not None and last.is_error else DONE


async def _rewind(opener: AgentFactory, message_id: str) -> int:
    """Restore files to their state at a message."""
    session = opener.open_session(ClientOptions())
    try:
        told = await rewind_files(session, message_id)
    finally:
        await session.close()
    changed = told["filesChanged"]
    print_status(f"{format_count(len(changed), 'file')} restored" + (":" if changed else "."))
    write_out("".join(f"{to_visible_text(path)}\n" for path in changed))
    return DONE


async def _run_setup_hooks(opener: AgentFactory, *, verbose: bool) -> int:
    """Run the Setup and SessionStart hooks; fail if one of them fails."""
    session = opener.open_session(ClientOptions())
    failures: list[str] = []

    def hear(event: Event) -> None:
        if not isinstance(event, HookRan) or event.event not in BEGINNING:
            return
        failure = describe_hook_failure(event)
        if failure is not None:
            failures.append(failure)
            print_status(failure)
        elif verbose:
            what = event.reason or " ".join((*event.told, *event.messages)) or event.outcome
            print_status(f"{event.event} hook {event.hook!r}: {what}")

    session.subscribe(hear)
    try:
        opening = get_parts(session).pipeline_context.opening
        if opening is not None:
            await opening()
        await asyncio.sleep(0)
    finally:
        await session.close()
    return FAILED if failures else DONE


async def _answer_prompt(
    arguments: argparse.Namespace, opener: AgentFactory, prompt: str | None, ending: _RunSignals
) -> int:
    """Answer one prompt in the chosen format."""
    agent = opener.open(ClientOptions())
    ending.suspend, ending.interrupt = agent.suspend, agent.interrupt
    codec = build_codec(agent, _build_serve_options(arguments, opener))
    teller = create_output(arguments, codec, agent.session.presenter())
    refusals = _Refusals()
    final: RunFinished | None = None
    try:
        if opener.permission_tool is not None:
            await opener.permission_tool.check()
        if prompt is not None and (done := await run_local_command(agent, prompt)) is not None:
            return _print_events(done, teller)
        prompts = await _collect_prompts(agent, prompt, teller)
        stop = agent.session.subscribe(teller.handle_session_event)
        answers = parse_answers(arguments.answer)
        for number, said in enumerate(prompts, 1):
            is_last = number == len(prompts)
            run = agent.run(said, answers=answers if number == 1 else None)
            shown = display_events(get_parts(agent.session).pipeline_context, run, by_lines=False)
            async with aclosing(shown) as events:
                async for event in events:
                    refusals.count(event)
                    if isinstance(event, RunFinished):
                        final = event
                        await asyncio.sleep(0)
                        if ending.code in {TERMINATED, HUNG_UP}:
                            break
                    teller.event(event, is_last=is_last)
            if final is not None and (final.is_error or final.pending):
                break
        else:
            if arguments.prompt_suggestions:
                await _suggest(agent, final, teller)
            _tell_unfinished(agent)
        stop()
    finally:
        await agent.close()
        await agent.session.close()
    return refusals.exit_code(final)


def _tell_unfinished(agent: Agent) -> None:
    """Name background work that is stopped now."""
    running = agent.session.jobs.running()
    if running:
        named = ", ".join(repr(job.description or job.command or job.job_id) for job in running)
        how = "Use --background-wait SECONDS to wait longer."
        print_status(f"Stopped background work: {to_visible_text(named)}. {how}")


async def _suggest(agent: Agent, final: RunFinished | None, teller: TextOutput) -> None:
    from handaxe.app.prompt_suggestions import suggest_prompt

    if (text := await suggest_prompt(agent, final)) is not None:
        teller.print_suggestion(text)


def _print_events(done: list[AgentEvent], teller: TextOutput) -> int:
    """Print the events of a prompt that did not reach the model and return the exit code."""
    for event in done:
        teller.event(event)
    last = done[-1]
    return FAILED if isinstance(last, RunFinished) and last.is_error else DONE


async def _collect_prompts(
    agent: Agent, prompt: str | None, teller: TextOutput
) -> list[str | None]:
    """The prompts: first that of a SessionStart hook, then the user's."""
    stop = agent.session.subscribe(teller.handle_hook_event)
    first = await agent.begin()
    await asyncio.sleep(0)
    stop()
    if first is not None and prompt is None:
        return [first]
    said = await _expand_prompt(agent, prompt)
    return [said] if first is None else [first, said]


async def _expand_prompt(agent: Agent, prompt: str | None) -> str | None:
    if prompt is None:
        if not agent.messages:
            raise SetupError("There is nothing to continue. Give a prompt: -p PROMPT.")
        return None
    try:
        return await expand_prompt(agent.session, prompt)
    except ToolFault as fault:
        raise SetupError(fault.sentence) from None


class _Refusals:
    """Whether a call was refused, for the exit code."""

    def __init__(self) -> None:
        self._were_refused = self._have_run = False

    def count(self, event: AgentEvent) -> None:
        """Count a result, also of a subagent."""
        while isinstance(event, FromAgent):
            event = event.event
        if not isinstance(event, ToolAnswered):
            return
        if not is_refused(event.result):
            self._have_run = True
        elif event.result.tool != _PLANNED or not self._have_run:
            # In plan mode a refused plan after other calls is the expected end.
            self._were_refused = True

    def exit_code(self, final: RunFinished | None) -> int:
        """3 if a call or the prompt was refused or waits for an answer; 1 after an error."""
        unsent = ("prompt_blocked", "permission_pending")
        if final is None or (final.is_error and final.terminal_reason not in unsent):
            return FAILED
        return REFUSED if final.is_error or final.pending or self._were_refused else DONE


def _build_serve_options(arguments: argparse.Namespace, opener: AgentFactory) -> ServeOptions:
    return ServeOptions(
        open_agent=opener.open,
        open_model=opener.model,
        shown=StreamOptions(
            partial_messages=arguments.include_partial_messages,
            user_messages=arguments.replay_user_messages,
            hook_events=arguments.include_hook_events,
            call_display=arguments.include_call_display,
            agents_text=arguments.forward_subagent_text
            or os.environ.get("CLAUDE_CODE_FORWARD_SUBAGENT_TEXT") == "1",
        ),
        asks=arguments.permission_prompt_tool == "stdio",
        servers=opener.servers,
        lookups=MessageLookups(cost_of=partial(compute_cost, opener.prices)),
        suggests=arguments.prompt_suggestions,
        going_on=(os.environ.get(_PROMPT_VARIABLE, "").strip() or _GO_ON)
        if is_env_true(_RESUME_VARIABLE)
        else None,
    )


def _check_options(arguments: argparse.Namespace) -> None:
    """Refuse combinations of options that make no sense."""
    is_stream = arguments.input_format == "stream-json"
    if is_stream and arguments.output_format != "stream-json":
        raise SetupError("--input-format stream-json needs --output-format stream-json.")
    if is_stream and arguments.prompt:
        raise SetupError("With --input-format stream-json, send the prompt on standard input.")
    is_resumed = arguments.continue_ or arguments.resume is not None
    for name in ("resume_session_at", "rewind_files"):
        if getattr(arguments, name) is not None and not is_resumed:
            raise SetupError(f"--{name.replace('_', '-')} needs --resume or --continue.")
    if parse_answers(arguments.answer) and (not is_resumed or is_stream):
        raise SetupError(
            "--answer needs --resume or --continue, and no --input-format stream-json."
        )
    if arguments.resume_drops_turn is not None and arguments.resume_session_at is None:
        raise SetupError("--resume-drops-turn needs --resume-session-at.")
    tool = arguments.permission_prompt_tool
    if tool == "stdio" and not is_stream:
        raise SetupError("--permission-prompt-tool stdio needs --input-format stream-json.")
    if arguments.prompt_suggestions and arguments.output_format != "stream-json":
        raise SetupError("--prompt-suggestions needs --output-format stream-json.")


def _read_prompt(arguments: argparse.Namespace) -> str | None:
    """The prompt from the arguments and standard input; None continues a conversation."""
    words = " ".join(arguments.prompt).strip()
    piped = _read_stdin(wait=not words).strip()
    prompt = "\n\n".join(part for part in (words, piped) if part)
    if prompt:
        return prompt
    if arguments.resume is not None or arguments.continue_ or _has_start_hook(arguments):
        return None
    raise SetupError("Give a prompt: `handaxe -p PROMPT`, or pipe it in.")


def _has_start_hook(arguments: argparse.Namespace) -> bool:
    """Whether a SessionStart hook may give the first prompt."""
    configuration = open_configuration(
        os.path.realpath(arguments.root),
        home=find_data_home(),
        given=read_settings_option(arguments.settings),
        sources=arguments.setting_sources,
        trusted=True if arguments.trust_project else None,
    )
    return any(group.event == "SessionStart" for group in configuration.merged.hooks)


def _read_stdin(*, wait: bool) -> str:
    """Read standard input; if there is a prompt, do not wait for a silent pipe."""
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
            print_status("No input on stdin; continuing without it.")
            return ""
    data = bytearray()
    for piece in read_chunks(fd):
        data += piece
        if len(data) > MAX_INPUT_BYTES:
            raise SetupError("Standard input has more than 10 MB. Put it into a file instead.")
    try:
        # Piped text comes from files and commands; it must not imitate messages of the runtime.
        return neutralize(data.decode())
    except UnicodeDecodeError:
        raise SetupError("Standard input is not UTF-8 text.") from None
