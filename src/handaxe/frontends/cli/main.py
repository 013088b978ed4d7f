"""Which command was asked for, and how it ended."""

import argparse
import gc
import io
import logging
import os
import signal
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.exit_codes import FAILED, INTERRUPTED, USAGE, Terminated

COMMANDS = {
    "call": "run one tool through the whole pipeline",
    "run": "run many calls in one session, JSON lines in and out",
    "tools": "list the tools on offer, or show one tool's schema and prompt",
    "prompt": "show the system prompt as it would be sent, part by part with sizes",
    "explain": "say whether a command or call would be allowed, and why",
    "mcp": "serve the tools to other agents, or list and change the servers used here",
    "config": "show, get or set settings, and where each comes from",
    "permissions": "list the rules in force, since when, and take one back",
    "trust": "let a project's own settings files also allow",
    "sessions": "list, show, export, fork, rewind, rename or delete sessions",
    "undo": "put back what a session changed",
    "history": "list the calls that changed files, and what they changed",
    "stats": "rank tools and servers by what they cost, and name those never used",
    "gc": "remove old contents that are kept for undo",
    "du": "show how much the data directory holds",
    "doctor": "say what works on this machine, and what to do about the rest",
    "tour": "see what handaxe does, on a throw-away project",
}

_OF_TOOLS = frozenset({"call", "tools"})
"""Their own words are names of tools, so a list of them cannot be told from a list of rules."""


def run(argv: Sequence[str]) -> int:
    """Run a command line; the exit code."""
    signal.signal(signal.SIGTERM, _raise_terminated)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # Under `nohup` the loss of the terminal means nothing.
        signal.signal(signal.SIGHUP, _raise_terminated)
    _open_missing_streams()
    _ensure_full_writes()
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a sign shows its number instead of ending the command.
        if isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict" or stream.encoding.lower() not in ("utf-8", "utf8")
        ):
            stream.reconfigure(errors="backslashreplace")
    logging.lastResort = _SafeLog(logging.WARNING)
    with _ensure_blocking_output():
        return _run_safely(argv)


class _SafeLog(logging.Handler):
    """Writes records that nobody else handles; they quote tools, models and servers."""

    def emit(self, record: logging.LogRecord) -> None:
        from handaxe.frontends.cli.render import write_error

        try:
            write_error(f"{self.format(record)}\n")
        except (OSError, ValueError):
            self.handleError(record)


def _run_safely(argv: Sequence[str]) -> int:
    try:
        try:
            code = _run(argv)
        except SystemExit:
            # Help, too, may not have been written yet.
            sys.stdout.flush()
            raise
        sys.stdout.flush()
    except SetupError as error:
        _print_notice(str(error))
        return USAGE
    except (Terminated, KeyboardInterrupt) as error:
        from handaxe.frontends.cli.stdio import detach_stdout

        detach_stdout()
        return error.code if isinstance(error, Terminated) else INTERRUPTED
    except Exception as error:
        from handaxe.frontends.cli.stdio import is_output_lost

        if _is_directory_gone(error):
            _print_notice("The current directory is gone. Change to one that is there.")
            return USAGE
        if not is_output_lost(error):
            _print_notice(_describe_failure(error))
            if os.environ.get("HANDAXE_DEBUG"):
                raise
        return FAILED
    return code


def _print_notice(sentence: str) -> None:
    from handaxe.frontends.cli.render import print_notice

    print_notice(sentence)


def _describe_failure(error: Exception) -> str:
    from handaxe.contract.faults import ToolFault, describe_system_error, is_system_error

    if isinstance(error, ToolFault):
        return error.sentence
    if is_system_error(error):
        return f"The command failed because of the machine: {describe_system_error(error)}."
    return f"internal error: {type(error).__name__}: {error}"


def _is_directory_gone(error: Exception) -> bool:
    """Whether the directory we were started in is no longer there."""
    if not isinstance(error, FileNotFoundError) or error.filename is not None:
        return False
    try:
        return not Path.cwd().exists()
    except FileNotFoundError:
        return True


def _run(argv: Sequence[str]) -> int:
    """Run the named command, or the agent; only the parser that is needed is built."""
    if not argv or argv[0] not in COMMANDS:
        from handaxe.frontends.cli.agent_command import run_agent

        parser = _build_parser("handaxe", "The tool runtime for coding agents.")
        _collect_garbage()
        return run_agent(parser, argv, COMMANDS)
    name = argv[0]
    parser = _build_parser(f"handaxe {name}", COMMANDS[name])
    command = import_module(f"handaxe.frontends.cli.commands.{name}")
    command.configure(parser)
    _collect_garbage()
    words, into = argv[1:], argparse.Namespace(command=name)
    if name not in _OF_TOOLS and len(words) > 2:
        from handaxe.frontends.cli.variadic_options import expand_variadic_options

        words = expand_variadic_options(words)
    # Names among options take a second look at the line, which nobody else need pay for.
    is_server = name == "mcp" and words and not words[0].startswith("-")
    is_mixed = is_server or (name == "call" and any(w.startswith("-") for w in words[1:-1]))
    parse = parser.parse_intermixed_args if is_mixed else parser.parse_args
    return command.run(parse(words, into))


def _collect_garbage() -> None:
    """From here on; what was loaded so far stays for good, and need not be looked at again."""
    gc.freeze()
    gc.enable()


def _build_parser(program: str, description: str) -> argparse.ArgumentParser:
    return _Parser(
        prog=program, description=description, allow_abbrev=False, formatter_class=_Formatter
    )


class _Parser(argparse.ArgumentParser):
    """Words that it cannot use may come from anywhere, such as names of files."""

    def error(self, message: str) -> NoReturn:
        from handaxe.text.escape import to_visible_text

        _, _, words = message.partition("unrecognized arguments: ")
        if self.prog == "handaxe call" and words.startswith("-") and "=" in words:
            message += f" (inputs that begin with a dash stand after --: -- {words})"
        super().error(to_visible_text(message))

    def _print_message(self, message: str, file: Any = None) -> None:  # noqa: ANN401 - as argparse
        # That of argparse takes a full device for a success.
        if message:
            (file or sys.stderr).write(message)


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Help as wide as the terminal, without the modules argparse loads to find that out."""

    def __init__(self, prog: str) -> None:
        try:
            columns = os.get_terminal_size().columns
        except OSError:
            columns = 80
        told = os.environ.get("COLUMNS", "")
        super().__init__(prog, width=(int(told) if told.isdecimal() else columns) - 2)


def _open_missing_streams() -> None:
    """A stream that whoever started us has closed leads nowhere; no file may get its number."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, fd)
            if nowhere != fd:
                os.close(nowhere)
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8"))


def _ensure_full_writes() -> None:
    """Let no write end early: without a buffer (PYTHONUNBUFFERED) nobody writes the rest."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), io.FileIO):
            encoding, errors = stream.encoding, stream.errors
            whole: Any = io.BufferedWriter(stream.detach())
            setattr(sys, name, io.TextIOWrapper(whole, encoding, errors, line_buffering=True))


@contextmanager
def _ensure_blocking_output() -> Generator[None]:
    """Output that waits for a slow reader also where whoever shares it has made it not wait."""
    changed: list[int] = []
    for fd in (1, 2):
        with suppress(OSError):
            if not os.get_blocking(fd):
                os.set_blocking(fd, True)
                changed.append(fd)
    try:
        yield
    finally:
        for fd in changed:
            with suppress(OSError):
                os.set_blocking(fd, False)


def _raise_terminated(number: int, _frame: object) -> None:
    raise Terminated(128 + number)
