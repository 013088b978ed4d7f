"""`handaxe` without a command: the agent, at a terminal or without one."""

import argparse
import sys
from collections.abc import Sequence
from typing import Any

from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.agent_options import is_headless
from handaxe.frontends.cli.command_pages import PAGES
from handaxe.text.escape import find_closest_name


def run_agent(arguments: argparse.Namespace) -> int:
    """Run the agent that a command line asks for; the exit code."""
    if arguments.debug or arguments.debug_file:
        _log_everything(arguments.debug_file)
    if is_headless(arguments):
        from handaxe.frontends.cli.headless import run_headless

        return run_headless(arguments)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SetupError(_explain_no_terminal(arguments.prompt))
    from handaxe.frontends.cli.repl import run_interactive

    return run_interactive(arguments)


def _log_everything(file: str | None) -> None:
    import logging
    from types import SimpleNamespace

    from handaxe.frontends.cli.render import write_error

    try:
        # Records quote models, servers and commands.
        safe = SimpleNamespace(write=write_error, flush=sys.stderr.flush)
        target = logging.StreamHandler[Any](safe) if file is None else logging.FileHandler(file)
    except OSError as error:
        raise SetupError(f"--debug-file: {file} cannot be written ({error.strerror}).") from None
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
