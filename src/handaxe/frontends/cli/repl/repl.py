"""The conversation in a terminal."""

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from handaxe.agent.events import RunFinished, ToolAnswered
from handaxe.agent.message_display import display_events
from handaxe.app.agent import Agent
from handaxe.app.services.configuration import open_configuration
from handaxe.app.session import get_parts
from handaxe.app.slash_commands import expand_prompt, list_slash_commands
from handaxe.config.working_directories import resolve_project
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.faults import SetupError, ToolFault
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.questions import Answers, UserQuestion
from handaxe.frontends.cli.agent_factory import AgentFactory, ConversationNotFound
from handaxe.frontends.cli.exit_codes import DONE, FAILED, INTERRUPTED
from handaxe.frontends.cli.render import can_show_colour, print_notice, write_out
from handaxe.frontends.cli.repl.builtin_commands import COMMANDS, ExitRequested, run_command
from handaxe.frontends.cli.repl.line_editor import Interrupted, LineEditor, create_line_editor
from handaxe.frontends.cli.repl.renderer import ReplRenderer
from handaxe.frontends.cli.repl.session_info import describe_access, has_advisory_rules, is_new_here
from handaxe.frontends.cli.terminal_prompts import (
    SAID_NO,
    ask_for_trust,
    ask_in_terminal,
    fill_form_in_terminal,
)
from handaxe.frontends.cli.tty_input import ESCAPE, KeyWatcher, ask_line, read_line
from handaxe.frontends.signals import list_ending_signals
from handaxe.frontends.stream_json.server import ClientOptions
from handaxe.hooks.notify import notify_hooks
from handaxe.storage.home import find_data_home
from handaxe.text.escape import format_count, to_visible_text

WOKEN = "(the agent continues with news from background work)"
CYCLE = ("default", "acceptEdits", "plan")
Answer = TypeVar("Answer")
_TWICE_S = 2.0
IDLE_S = 60.0
"""Seconds after an answer until an idle notification."""


def run_interactive(arguments: argparse.Namespace) -> int:
    """Run the conversation until the user leaves and return the exit code."""
    if arguments.resume == "":
        arguments.resume, arguments.pick = None, True
    if arguments.init or arguments.maintenance:
        print_notice("--init and --maintenance need -p.")
        arguments.init = arguments.maintenance = False
    try:
        opener = AgentFactory(arguments)
    except ConversationNotFound as missing:
        print_notice(missing)
        return FAILED
    try:
        if not arguments.trust_project:
            root, sources = resolve_project(arguments.root), arguments.setting_sources
            ask_for_trust(open_configuration(root, home=find_data_home(), sources=sources))
        return asyncio.run(_run_repl(arguments, opener))
    finally:
        opener.clean_up()


async def _run_repl(arguments: argparse.Namespace, opener: AgentFactory) -> int:
    dialogue = Repl(arguments, opener)
    task = asyncio.ensure_future(dialogue.talk(" ".join(arguments.prompt)))
    with suppress(NotImplementedError):
        for number in set(list_ending_signals()) - {signal.SIGINT}:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(number, dialogue.terminate, task, 128 + number)
    try:
        return await task
    except asyncio.CancelledError:
        return dialogue.ended_by or INTERRUPTED
    finally:
        await dialogue.close()


class Repl:
    """One user and one agent at a time."""

    def __init__(self, arguments: argparse.Namespace, opener: AgentFactory) -> None:
        self.arguments = arguments
        self.opener = opener
        # Do not wait for background work at the end of a turn; it reports later.
        opener.wait_s = 0.0, 0.0
        opener.defers_calls = False
        self.screen = ReplRenderer(colour=can_show_colour(sys.stdout))
        self.usage = TokenUsage()
        self.cost_usd: float | None = 0.0
        self.tool_tokens: dict[str, int] = {}
        self.ended_by = 0
        """The exit code after a signal."""
        self._keys = KeyWatcher(self._stop_turn)
        self._expanding: asyncio.Future[str] | None = None
        self._interrupted_at = -_TWICE_S
        self._is_leaving = False
        self._has_answered = self._is_woken = False
        self._reading: asyncio.Future[str | None] | None = None
        self._terminal = asyncio.Lock()
        """Held by the reader of the terminal: the editor or a question."""
        self._asking: list[asyncio.Future[Any]] = []
        self.agent = self._open()
        self._editor: LineEditor = create_line_editor(
            find_data_home() / "history",
            commands=self._list_command_names,
            root=lambda: self.agent.session.workdir.current,
            on_mode=self.switch_mode,
        )

    async def talk(self, first: str) -> int:
        """Read and answer prompts."""
        self._greet()
        if getattr(self.arguments, "pick", False):
            await run_command("/resume", self)
        waiting = [first] if first else []
        while True:
            text = waiting.pop(0) if waiting and not self._is_asked else await self._read(waiting)
            if text is None:
                return INTERRUPTED if self._is_leaving else DONE
            if not text.strip():
                continue
            try:
                await (self._work(None) if text is WOKEN else self._handle_line(text.strip()))
            except ExitRequested:
                return DONE
            except (SetupError, ToolFault) as error:
                self.screen.say(str(error), "bad")
            if self._is_leaving:
                return INTERRUPTED
            # Lines typed while the agent worked are prompts.
            *lines, rest = self._keys.take().replace("\r", "\n").split("\n")
            waiting += [line for line in lines if line.strip()]
            self._keys.typed = rest

    async def reopen(self, session_id: str | None) -> None:
        """Close this session and continue in another; None opens a new one."""
        old = self.agent
        self.arguments.session_id = session_id
        self.agent = self._open("clear" if session_id is None else "resume")
        await old.close()
        await old.session.close("clear" if session_id is None else "resume")

    async def close(self) -> None:
        """Close the agent with its session."""
        await self.agent.close()
        await self.agent.session.close("prompt_input_exit")

    def terminate(self, task: "asyncio.Task[int]", code: int) -> None:
        """The process ends: stop so that the work can be resumed later."""
        self.ended_by = code
        self.agent.suspend()
        task.cancel()

    def switch_mode(self) -> None:
        """Switch to the next permission mode of the cycle."""
        mode = self.agent.session.permissions.mode
        at = CYCLE.index(mode) if mode in CYCLE else -1
        self.agent.session.set_mode(CYCLE[(at + 1) % len(CYCLE)])

    async def read_answer(self) -> str | None:
        """Read the answer to a question of a slash command."""
        return await self._ask_in_turn(read_line)

    def _open(self, source: str | None = None) -> Agent:
        brought = ClientOptions(
            on_ask=self._ask,
            on_question=lambda questions: self._ask_in_turn(lambda: ask_in_menu(questions)),
            on_elicit=lambda form: self._ask_in_turn(lambda: fill_form_in_terminal(form)),
            source=source,
        )
        agent = self.opener.open(brought)
        agent.session.subscribe(self.screen.hear)
        agent.wakes.on_wake = self._wake
        return agent

    def _greet(self) -> None:
        session = self.agent.session
        self.screen.say(f"handaxe in {session.workdir.root}, model {self.agent.model.name}.")
        self.screen.say("/help lists commands; Esc stops the agent; Ctrl-D leaves.", "muted")
        if is_new_here(session):
            for line in describe_access(session):
                self.screen.say(line, "muted")
        elif has_advisory_rules(session):
            self.screen.say(describe_access(session)[-1], "muted")
        if said := len(self.agent.messages):
            self.screen.say(
                f"Continuing a conversation of {format_count(said, 'message')}.", "muted"
            )

    def _prompt(self) -> str:
        mode = self.agent.session.permissions.mode
        sign = _choose_prompt_sign()
        return f"{mode} {sign} " if mode != "default" else f"{sign} "

    def _list_command_names(self) -> list[str]:
        return [*COMMANDS, *(skill.name for skill in list_slash_commands(self.agent.session))]

    async def _read(self, waiting: list[str]) -> str | None:
        """The next prompt, when no question is open; Ctrl-C twice leaves."""
        while True:
            with _on_interrupt(self._drop_questions):
                await self._terminal.acquire()
            try:
                if self._is_leaving:
                    return None
                if self._is_asked:
                    await asyncio.sleep(0)
                    continue
                if waiting:
                    return waiting.pop(0)
                if self._is_woken and not self._keys.typed:
                    return WOKEN
                reading = await self._edit()
            finally:
                self._terminal.release()
            if not reading.cancelled() and not isinstance(reading.exception(), Interrupted):
                return reading.result()
            if self._is_asked:
                self._keys.typed = self._editor.take_text()
            elif not self._is_woken:
                if self._is_repeated_interrupt():
                    self._is_leaving = True
                    return None
                self.screen.say("\n(press Ctrl-C again to leave)", "muted")

    async def _edit(self) -> "asyncio.Future[str | None]":
        """Read a prompt; cancelled when a question needs the terminal."""
        reading = asyncio.ensure_future(self._editor.read(self._prompt, self._keys.take()))
        self._reading = reading
        idle = asyncio.get_running_loop().call_later(IDLE_S, self._notify_idle)
        try:
            with _on_interrupt(reading.cancel):
                await asyncio.wait((reading,))
        finally:
            idle.cancel()
            reading.cancel()
            self._reading = None
        return reading

    def _wake(self) -> None:
        """Background work has news; do not interrupt a user who is typing."""
        self._is_woken = True
        if self._reading is not None and not self._editor.has_text:
            self._reading.cancel()

    def _notify_idle(self) -> None:
        """Notify hooks once after each answer that the agent is idle."""
        if not self._has_answered or self._editor.has_text:
            return
        self._has_answered = False
        about = {"notification_type": "idle_prompt", "title": "Waiting for you"}
        said = "The agent is waiting for your input."
        notify_hooks(
            get_parts(self.agent.session).pipeline_context, "Notification", message=said, **about
        )

    async def _handle_line(self, text: str) -> None:
        if await run_command(text, self):
            return
        await self._work(text)

    async def _work(self, text: str | None) -> None:
        """Run the agent on a prompt; None: on news from background work."""
        self._is_woken = False
        if text is None and not self.agent.wakes.wants_run:
            return
        with self._keys.watched(), _on_interrupt(self._handle_interrupt):
            prompt = None if text is None else await self._expanded(text)
            if prompt is None and text is not None:
                return
            context = get_parts(self.agent.session).pipeline_context
            shown = display_events(context, self.agent.run(prompt), by_lines=True)
            async with aclosing(shown) as events:
                async for event in events:
                    self.screen.show(event, self.agent.session)
                    if isinstance(event, ToolAnswered):
                        tool, tokens = event.result.tool, event.result.tokens
                        self.tool_tokens[tool] = self.tool_tokens.get(tool, 0) + tokens
                    elif isinstance(event, RunFinished):
                        self._count(event)
                        self._has_answered = True
        if self.agent.wakes.wants_run:
            # News arrived while the run ended.
            self._is_woken = True

    async def _expanded(self, text: str) -> str | None:
        """The prompt of a line with its commands expanded; None if the user stopped it."""
        self._expanding = asyncio.ensure_future(expand_prompt(self.agent.session, text))
        await asyncio.wait((self._expanding,))
        return None if self._expanding.cancelled() else self._expanding.result()

    def _count(self, final: RunFinished) -> None:
        self.usage = self.usage.add_usage(final.usage)
        known = self.cost_usd is not None and final.cost_usd is not None
        self.cost_usd = (self.cost_usd or 0.0) + (final.cost_usd or 0.0) if known else None

    def _stop_turn(self) -> None:
        if self.agent.interrupt() or (self._expanding is not None and self._expanding.cancel()):
            self.screen.say("Stopping...", "muted")

    def _handle_interrupt(self) -> None:
        if self._is_repeated_interrupt():
            self._is_leaving = True
        self._stop_turn()

    def _is_repeated_interrupt(self) -> bool:
        now = time.monotonic()
        is_second = now - self._interrupted_at < _TWICE_S
        self._interrupted_at = now
        return is_second

    async def _ask(self, request: PermissionRequest) -> Allow | Deny:
        no_stops = request.agent_id is None
        answer = await self._ask_in_turn(lambda: ask_in_terminal(request, no_stops=no_stops))
        return answer or Deny(SAID_NO, by="user")

    @property
    def _is_asked(self) -> bool:
        """Whether a question is open or waits for the terminal."""
        return any(not asking.done() for asking in self._asking)

    async def _ask_in_turn(self, ask: Callable[[], Awaitable[Answer]]) -> Answer | None:
        """Ask when the terminal is free; None if the question was dropped.

        Background work may ask at any time. The text of the editor's line is kept, and the question
        appears after the editor has released the terminal.
        """
        asking = asyncio.ensure_future(self._ask_alone(ask))
        self._asking.append(asking)
        if self._reading is not None:
            self._reading.cancel()
        try:
            await asyncio.wait((asking,))
            return None if asking.cancelled() else asking.result()
        finally:
            asking.cancel()
            self._asking.remove(asking)

    async def _ask_alone(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        async with self._terminal:
            with self._keys.pause_keys():
                self.screen.finish_output()
                return await ask()

    def _drop_questions(self) -> None:
        """Handle Ctrl-C at a question of background work: refuse it."""
        self._is_leaving = self._is_repeated_interrupt()
        # Questions appear in order, so the user has seen only the first one.
        open_questions = [asking for asking in self._asking if not asking.done()]
        for asking in open_questions if self._is_leaving else open_questions[:1]:
            asking.cancel()


def _choose_prompt_sign() -> str:
    """The prompt sign, if the terminal can show it."""
    try:
        "›".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ">"
    return "›"


class _on_interrupt:  # noqa: N801 - used like a function
    """Call a function on Ctrl-C inside the block."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call

    def __enter__(self) -> None:
        with suppress(NotImplementedError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self._call)

    def __exit__(self, *_: object) -> None:
        with suppress(NotImplementedError):
            asyncio.get_running_loop().remove_signal_handler(signal.SIGINT)


async def ask_in_menu(questions: tuple[UserQuestion, ...]) -> Answers | None:
    """The user's answers, or None."""
    answers: dict[str, str] = {}
    for question in questions:
        write_out(_format_menu(question))
        several = "numbers" if question.multi_select else "a number"
        line = await ask_line(f"Choose {several}, or answer in your own words: ", sys.stdout)
        if line is None or line == ESCAPE or not line.strip():
            return Answers(answers=answers) if answers else None
        answers[question.question] = parse_choice(question, line)
    return Answers(answers=answers)


def parse_choice(question: UserQuestion, line: str) -> str:
    """The answer of a line: the labels of its numbers, or its text."""
    words = line.replace(",", " ").split()
    labels = [choice.label for choice in question.options]
    numbers = [int(word) for word in words if word.isdecimal()]
    is_choice = bool(numbers) and len(numbers) == len(words)
    if is_choice and all(1 <= number <= len(labels) for number in numbers):
        picked = numbers if question.multi_select else numbers[:1]
        return ", ".join(dict.fromkeys(labels[number - 1] for number in picked))
    return line.strip()


def _format_menu(question: UserQuestion) -> str:
    lines = [f"\n[{to_visible_text(question.header)}] {_indent_lines(question.question)}\n"]
    for number, choice in enumerate(question.options, 1):
        meaning = f": {_indent_lines(choice.description)}" if choice.description else ""
        lines.append(f"  {number}. {to_visible_text(choice.label)}{meaning}\n")
        if choice.preview:
            lines += [f"       {to_visible_text(line)}\n" for line in choice.preview.splitlines()]
    return "".join(lines)


def _indent_lines(text: str) -> str:
    """Text with its further lines indented."""
    return to_visible_text(text, lines=True).replace("\n", "\n       ")
