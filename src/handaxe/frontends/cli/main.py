"""Run the command of a command line and return its exit code."""

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
from typing import Any

from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.arguments import CommandPage, CommandParser, HelpRequested, split_action
from handaxe.frontends.cli.command_pages import PAGES
from handaxe.frontends.cli.exit_codes import DONE, FAILED, INTERRUPTED, USAGE, Terminated
from handaxe.text.escape import find_closest_name, format_suggestion

_OF_TOOLS = frozenset({"call", "tools"})
"""Their arguments are names of tools, which look like a list of rules."""


def run(argv: Sequence[str]) -> int:
    """Run a command line and return the exit code."""
    signal.signal(signal.SIGTERM, _raise_terminated)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        # Under `nohup` the loss of the terminal means nothing.
        signal.signal(signal.SIGHUP, _raise_terminated)
    _open_missing_streams()
    _ensure_full_writes()
    for stream in (sys.stdout, sys.stderr):
        # A character that the encoding lacks becomes its number instead of an error.
        if isinstance(stream, io.TextIOWrapper) and (
            stream.errors == "strict" or stream.encoding.lower() not in ("utf-8", "utf8")
        ):
            stream.reconfigure(errors="backslashreplace")
    logging.lastResort = _SafeLog(logging.WARNING)
    with _ensure_blocking_output():
        return _run_safely(argv)


class _SafeLog(logging.Handler):
    """Writes records that have no other handler; they quote tools, models and servers."""

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
        except HelpRequested as asked:
            code = _print_page(asked.program, asked.page)
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
            _print_notice("The current directory no longer exists. Change to another one.")
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
        return f"System error: {describe_system_error(error)}."
    return f"internal error: {type(error).__name__}: {error}"


def _is_directory_gone(error: Exception) -> bool:
    """Whether the current directory no longer exists."""
    if not isinstance(error, FileNotFoundError) or error.filename is not None:
        return False
    try:
        return not Path.cwd().exists()
    except FileNotFoundError:
        return True


def _run(argv: Sequence[str]) -> int:
    """Run the named command, or the agent; only the parser that is needed is built."""
    name = argv[0] if argv else ""
    if name not in PAGES:
        return _run_agent(argv)
    if name == "help":
        return _print_help(argv[1:])
    if name == "version" and len(argv) == 1:
        return _print_version()
    arguments = parse_command(name, argv[1:])
    command = import_module(f"handaxe.frontends.cli.commands.{name}")
    _collect_garbage()
    return command.run(arguments)


def parse_command(name: str, words: Sequence[str]) -> argparse.Namespace:
    """The arguments of a command, with its name and its action."""
    program, page, action = f"handaxe {name}", PAGES[name], None
    if page.actions:
        action, words = split_action(program, page, words)
        if action is not None:
            program, page = f"{program} {action}", page.actions[action]
        else:
            # The help shows the options of the default action beside the list of actions.
            action, default = next(iter(page.actions.items()))
            page = page._replace(groups=default.groups)
    if name not in _OF_TOOLS and len(words) > 2:
        from handaxe.frontends.cli.variadic_options import expand_variadic_options

        words = expand_variadic_options(words)
    into = argparse.Namespace(command=name, action=action)
    return CommandParser(program, page).read_words(words, into)


def _run_agent(argv: Sequence[str]) -> int:
    from handaxe.frontends.cli.agent_page import AGENT_PAGE
    from handaxe.frontends.cli.variadic_options import check_prompt, expand_variadic_options

    page = AGENT_PAGE._replace(actions=PAGES)
    words = ["--debug" if word.startswith("--debug=") else word for word in argv]
    parser = CommandParser("handaxe", page)
    arguments = parser.read_words(expand_variadic_options(words), argparse.Namespace())
    if arguments.version:
        return _print_version()
    check_prompt(words, arguments.prompt)
    _collect_garbage()
    if arguments.debug or arguments.debug_file:
        _log_everything(arguments.debug_file)
    from handaxe.frontends.cli.agent_options import is_headless

    if is_headless(arguments):
        from handaxe.frontends.cli.headless import run_headless

        return run_headless(arguments)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SetupError(_explain_no_terminal(arguments.prompt))
    from handaxe.frontends.cli.repl import run_interactive

    return run_interactive(arguments)


def _log_everything(file: str | None) -> None:
    from types import SimpleNamespace

    from handaxe.frontends.cli.render import write_error

    try:
        # Records quote models, servers and commands.
        safe = SimpleNamespace(write=write_error, flush=sys.stderr.flush)
        target = logging.StreamHandler[Any](safe) if file is None else logging.FileHandler(file)
    except OSError as error:
        raise SetupError(f"--debug-file: cannot write {file} ({error.strerror}).") from None
    logging.basicConfig(level=logging.DEBUG, handlers=[target])


def _explain_no_terminal(prompt: Sequence[str]) -> str:
    word = prompt[0] if prompt else ""
    near = find_closest_name(word, PAGES) if word.isalpha() else None
    if near is not None:
        return f"There is no command {word!r}. Did you mean {near!r}?"
    return (
        "The agent needs a terminal. Use `handaxe -p PROMPT` to print one answer; "
        "`handaxe --help` lists the commands."
    )


def _print_help(words: Sequence[str]) -> int:
    """Print the page of a command, of one of its actions, or of handaxe."""
    from handaxe.frontends.cli.agent_page import AGENT_PAGE

    program, page = "handaxe", AGENT_PAGE._replace(actions=PAGES)
    for word in words:
        if word not in page.actions:
            hint = format_suggestion(word, page.actions)
            raise SetupError(f"There is no help for {word!r}.{hint} Run `{program} --help`.")
        program, page = f"{program} {word}", page.actions[word]
    return _print_page(program, page)


def _print_page(program: str, page: CommandPage) -> int:
    from handaxe.frontends.cli.help_text import format_page, get_columns
    from handaxe.frontends.cli.render import write_out

    write_out(format_page(program, page, get_columns()))
    return DONE


def _print_version() -> int:
    from handaxe.frontends.cli.render import write_out
    from handaxe.version import __version__

    write_out(f"{__version__} (handaxe)\n")
    return DONE


def _collect_garbage() -> None:
    """Collect garbage again, except what was loaded so far, which stays for good."""
    gc.freeze()
    gc.enable()


def _open_missing_streams() -> None:
    """Open /dev/null for standard streams that are closed, so that no file gets their numbers."""
    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, fd)
            if nowhere != fd:
                os.close(nowhere)
            setattr(sys, name, os.fdopen(fd, mode, encoding="utf-8"))


def _ensure_full_writes() -> None:
    """Add a buffer under PYTHONUNBUFFERED, where a write may end before all is written."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name)
        if isinstance(getattr(stream, "buffer", None), io.FileIO):
            encoding, errors = stream.encoding, stream.errors
            whole: Any = io.BufferedWriter(stream.detach())
            setattr(sys, name, io.TextIOWrapper(whole, encoding, errors, line_buffering=True))


@contextmanager
def _ensure_blocking_output() -> Generator[None]:
    """Make inherited non-blocking stdout and stderr blocking inside the block."""
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
