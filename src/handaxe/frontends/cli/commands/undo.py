"""`handaxe undo`: undo the changes of a session, open or closed."""

import argparse
import asyncio
import os
import sys
from typing import cast

from handaxe.app.undo_commands import choose_session_to_undo, find_past_sessions
from handaxe.config.working_directories import resolve_project
from handaxe.contract.display import Text
from handaxe.contract.faults.undo import UndoOutside
from handaxe.contract.ports.undo import UndoRequest
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.data_home import open_data_home
from handaxe.frontends.cli.exit_codes import compute_exit_code
from handaxe.frontends.cli.json_output import encode_result, write_line
from handaxe.frontends.cli.render import BlockRenderer, write_error, write_rendered
from handaxe.frontends.cli.tty_input import ask_line
from handaxe.text.paths import unquote_path


def run(arguments: argparse.Namespace) -> int:
    """Undo and print what was restored."""
    result = asyncio.run(_undo(arguments))
    if arguments.json:
        write_line(encode_result(result))
    elif result.ok:
        write_rendered(_render_result(result))
    else:
        # The text quotes files, so escape control characters.
        write_error(BlockRenderer(colour=False).block(Text(_add_advice(result))))
    return compute_exit_code([result])


async def _undo(arguments: argparse.Namespace) -> ToolResult:
    root = resolve_project(arguments.root, may_be_gone=True)
    sessions = find_past_sessions(open_data_home(), root=root, session_id=arguments.session_id)
    wanted = UndoRequest(
        call_id=arguments.call_id,
        only=arguments.only,
        redo=arguments.redo,
        force=arguments.force,
        paths=tuple(map(_find_path, arguments.path)),
    )
    session = choose_session_to_undo(sessions, wanted)
    if arguments.outside:
        return await session.undo(wanted, agreed=None)
    result = await session.undo(wanted)
    paths = _get_outside_paths(result)
    if not paths or arguments.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        return result
    return await session.undo(wanted, agreed=paths) if await _confirm_outside(result) else result


def _find_path(word: str) -> str:
    """The path of a word, which may be quoted as in results."""
    meant = unquote_path(word)
    return os.path.abspath(word if meant is None else meant)


def _get_outside_paths(result: ToolResult) -> tuple[str, ...]:
    """The paths outside the project that a refused undo would change."""
    if result.code != UndoOutside.code:
        return ()
    return tuple(cast("dict[str, list[str]]", result.data)["paths"])


async def _confirm_outside(result: ToolResult) -> bool:
    """Ask whether to restore files outside the project."""
    write_error(BlockRenderer(colour=False).block(Text(result.text)))
    line = await ask_line("Restore them anyway? [y/N]: ", sys.stderr)
    return (line or "").strip().lower() in {"y", "yes"}


def _render_result(result: ToolResult) -> str:
    painter = BlockRenderer.create_for_stdout()
    notes = tuple(Text(note, "muted") for note in result.notes)
    blocks = (Text(result.text), *(result.display or ()), *notes)
    return "".join(painter.block(block) for block in blocks)


def _add_advice(result: ToolResult) -> str:
    if result.code == "undo.conflict":
        return f"{result.text}\nRun `handaxe undo --force` with the same arguments."
    if result.code == "undo.ambiguous":
        return f"{result.text}\nRun `handaxe undo --path PATH` or `handaxe undo --force`."
    if result.code == "undo.nothing":
        return f"{result.text} `handaxe history` lists the changes."
    return result.text
