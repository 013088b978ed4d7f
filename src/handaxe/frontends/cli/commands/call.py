"""`handaxe call`: one tool call through the whole pipeline."""

import argparse
import asyncio
import sys
from typing import TYPE_CHECKING, Any

import msgspec

from handaxe.app.session import get_parts
from handaxe.contract.faults import SetupError
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.exit_codes import compute_exit_code
from handaxe.frontends.cli.render import BlockRenderer, write_rendered
from handaxe.frontends.cli.session_options import open_session

if TYPE_CHECKING:
    from handaxe.contract.ports.questions import ElicitationForm


def run(arguments: argparse.Namespace) -> int:
    """Make the call and print its result."""
    call_input = read_call_input(arguments.input)
    result, shown = asyncio.run(_run_call(arguments, call_input))
    if arguments.json:
        from handaxe.frontends.cli.json_output import encode_result, write_line

        write_line(encode_result(result))
    else:
        write_rendered(shown)
    return compute_exit_code([result])


async def _run_call(
    arguments: argparse.Namespace, call_input: dict[str, Any]
) -> tuple[ToolResult, str]:
    async with open_session(arguments, **_find_person()) as session:
        get_parts(session).services.ready_tree.leave()
        result = await session.call(arguments.tool, call_input)
        get_parts(session).recorder.flush()
        result = _drop_pair_notes(get_parts(session).recorder.logged(result), arguments.input)
        shown = (
            ""
            if arguments.json
            else BlockRenderer.create_for_stdout().result(session, result, call_input)
        )
    return result, shown


def _drop_pair_notes(result: ToolResult, words: list[str]) -> ToolResult:
    """Drop notes about converted text: the value of a pair is always text."""
    pairs = tuple(f"{word.partition('=')[0]}: read " for word in words if not _is_json(word))
    notes = tuple(note for note in result.notes if not note.startswith(pairs))
    return msgspec.structs.replace(result, notes=notes)


def _find_person() -> dict[str, Any]:
    """Callbacks for permission questions and forms, if a user is at the terminal."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return {}
    from handaxe.frontends.cli.terminal_prompts import ask_in_terminal

    return {"on_ask": ask_in_terminal, "on_elicit": _fill_form}


async def _fill_form(form: "ElicitationForm") -> dict[str, Any] | None:
    from handaxe.frontends.cli.terminal_prompts import fill_form_in_terminal

    return await fill_form_in_terminal(form)


def read_call_input(words: list[str]) -> dict[str, Any]:
    """The input from JSON objects and `key=value` words."""
    call_input: dict[str, Any] = {}
    for word in words:
        if _is_json(word):
            from handaxe.frontends.cli.json_output import decode_text

            try:
                value = decode_text(word)
            except ValueError as error:
                raise SetupError(f"The input is not JSON: {error}") from None
            call_input.update(value)
            continue
        key, equals, text = word.partition("=")
        if not equals or not key:
            raise SetupError(f"{word!r} is not an input. Give a JSON object or key=value.")
        call_input[key] = text
    return call_input


def _is_json(word: str) -> bool:
    return word.lstrip().startswith("{")
