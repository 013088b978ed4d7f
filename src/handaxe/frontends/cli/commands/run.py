"""`handaxe run [FILE|-]`: many calls in one session, one result line per call line."""

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast

import msgspec

from handaxe.app.session import Session, get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.faults import BadLine, Cancelled, SetupError
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.exit_codes import compute_exit_code
from handaxe.frontends.cli.json_output import decode_line, encode_result, write_line
from handaxe.frontends.cli.session_options import open_session
from handaxe.frontends.cli.stdio import allow_interrupt
from handaxe.frontends.line_input import stream_lines
from handaxe.text.sanitize import escape_surrogates

_SHAPE = 'Send {"id": "1", "tool": "Read", "input": {...}} or {"batch": [{...}, ...]}.'


def run(arguments: argparse.Namespace) -> int:
    """Answer every line in order."""
    return asyncio.run(_run(arguments))


async def _run(arguments: argparse.Namespace) -> int:
    source = _open(arguments.file)
    refused_only: list[ToolResult] = []
    async with open_session(arguments) as session:
        async for line in stream_lines(source.fileno()):
            results = await _answer(line, session)
            get_parts(session).recorder.flush()
            for result in map(get_parts(session).recorder.logged, results):
                with allow_interrupt():
                    write_line(encode_result(result))
                    sys.stdout.flush()
                if not result.ok:
                    refused_only.append(ToolResult(ok=False, code=result.code))
    return compute_exit_code(refused_only)


async def _answer(line: bytes, session: Session) -> list[ToolResult]:
    if line.isspace():
        return [_reject_line("The line is empty.")]
    try:
        value = decode_line(line)
    except ValueError as error:
        return [_reject_line(f"The line is not JSON: {error}.")]
    if not isinstance(value, dict):
        return [_reject_line("A line must be a JSON object.")]
    value = cast("dict[str, Any]", value)
    if "batch" not in value:
        call = _parse_call(value, session)
        return [call if isinstance(call, ToolResult) else await session.run(call)]
    if "tool" in value:
        return [
            _reject_line(
                "A line must have either `tool` or `batch`, not both.", _get_text_id(value)
            )
        ]
    return await _answer_batch(value, session)


async def _answer_batch(value: dict[str, Any], session: Session) -> list[ToolResult]:
    items, stops = value["batch"], value.get("stop_on_error", False)
    if not isinstance(items, list):
        return [_reject_line("`batch` must be a list.", _get_text_id(value))]
    if not isinstance(stops, bool):
        return [_reject_line("`stop_on_error` must be true or false.", _get_text_id(value))]
    read = [_parse_call(item, session) for item in cast("list[Any]", items)]
    if stops:
        read = _cancel_after_bad(read)
    calls = [call for call in read if isinstance(call, ToolCall)]
    ran = iter(await session.run_many(calls, stop_on_error=stops))
    return [item if isinstance(item, ToolResult) else next(ran) for item in read]


def _cancel_after_bad(read: list[ToolCall | ToolResult]) -> list[ToolCall | ToolResult]:
    """The items, where every call after the first invalid one is cancelled."""
    bad = next((at for at, item in enumerate(read) if isinstance(item, ToolResult)), len(read))
    later = (
        item
        if isinstance(item, ToolResult)
        else msgspec.structs.replace(
            ToolResult.from_fault(Cancelled(started=False)), id=item.id, tool=item.tool
        )
        for item in read[bad:]
    )
    return [*read[:bad], *later]


def _parse_call(value: object, session: Session) -> ToolCall | ToolResult:
    """The call of a JSON object, or the result that says what is wrong with it."""
    if not isinstance(value, dict):
        return _reject_line("A call must be an object.")
    value = cast("dict[str, Any]", value)
    call_id, tool = _get_text_id(value), value.get("tool")
    if call_id is None and value.get("id") is not None:
        return _reject_line("`id` must be a string.")
    if not isinstance(tool, str):
        return _reject_line("`tool` must be the name of a tool.", call_id)
    return ToolCall(
        escape_surrogates(call_id) if call_id else get_parts(session).new_call_id(),
        tool,
        value.get("input", {}),
    )


def _get_text_id(value: dict[str, Any]) -> str | None:
    call_id = value.get("id")
    if isinstance(call_id, int) and not isinstance(call_id, bool):
        return str(call_id)
    return call_id if isinstance(call_id, str) else None


def _reject_line(problem: str, call_id: str | None = None) -> ToolResult:
    result = ToolResult.from_fault(BadLine(f"{problem} {_SHAPE}"))
    return msgspec.structs.replace(result, id=escape_surrogates(call_id or ""))


def _open(name: str) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return Path(name).open("rb")
    except OSError as error:
        raise SetupError(f"Cannot read {name} ({error.strerror}).") from None
