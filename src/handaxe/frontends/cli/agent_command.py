"""`handaxe` without a command: the agent, at a terminal or without one."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.agent_options import add_agent_options, is_headless, parse_agent_options
from handaxe.text.escape import find_closest_name


def run_agent(
    parser: argparse.ArgumentParser, argv: Sequence[str], commands: Mapping[str, str]
) -> int:
    """Run the agent that a command line asks for; the exit code."""
    lines = "\n".join(f"  {name:10} {summary}" for name, summary in commands.items())
    parser.epilog = f"commands (`handaxe COMMAND --help` explains one):\n{lines}"
    add_agent_options(parser)
    arguments = parse_agent_options(parser, argv)
    if arguments.debug or arguments.debug_file:
        _log_everything(arguments.debug_file)
    if is_headless(arguments):
        from handaxe.frontends.cli.headless import run_headless

        return run_headless(arguments)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SetupError(_explain_no_terminal(argv, commands))
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


def _explain_no_terminal(argv: Sequence[str], commands: Mapping[str, str]) -> str:
    word = argv[0] if argv else ""
    near = find_closest_name(word, list(commands)) if word.isalpha() else None
    if near is not None:
        return f"There is no command {word!r}. Did you mean {near!r}?"
    return (
        "This is no terminal. Use `handaxe -p PROMPT` for one answer, or a command: "
        f"{', '.join(commands)}. `handaxe --help` says more."
    )
