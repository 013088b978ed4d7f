"""`handaxe explain`: a permission decision with its reasons; runs nothing."""

import argparse
import asyncio
import sys
from typing import Any, cast

import msgspec

from handaxe.app.explain import ExplainRequest, explain_in_session, explain_question
from handaxe.app.session import Session, get_parts
from handaxe.contract.decision import join_remedy
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.exit_codes import DONE
from handaxe.frontends.cli.json_output import decode_line, write_json
from handaxe.frontends.cli.render import print_notice, write_out
from handaxe.frontends.cli.session_options import open_session
from handaxe.frontends.line_input import read_lines
from handaxe.rules.tool_families import resolve_tool_alias
from handaxe.shell.exec.shfmt import find_cross_check
from handaxe.text.escape import find_closest_name, to_visible_text
from handaxe.tools import build_loaders

_MARKS = {"allow": "allow", "ask": "ask  ", "deny": "deny "}


def run(arguments: argparse.Namespace) -> int:
    """Print the decision."""
    if arguments.jsonl:
        if any(x is not None for x in (arguments.shell_command, arguments.tool, arguments.input)):
            raise SetupError(
                "--jsonl reads requests from standard input. Leave out COMMAND, --tool and --input."
            )
        for line in read_lines(sys.stdin.fileno()):
            _print_json(_answer_line(line))
        return DONE
    tool, call_input = _read_request(arguments)
    session = open_session(arguments)
    _warn_if_misspelled(tool, session)
    answer = asyncio.run(
        explain_in_session(
            tool, call_input, get_parts(session).pipeline_context, find_cross_check()
        )
    )
    if arguments.json:
        _print_json(answer)
    else:
        write_out(_format_answer(answer))
    return DONE


def _warn_if_misspelled(tool: str, session: Session) -> None:
    """Warn about a tool name that looks misspelled."""
    near = find_closest_name(tool, list(build_loaders()))
    is_known = tool in build_loaders() or any(
        one.name == tool for one in get_parts(session).catalog.list_offered()
    )
    if near and not is_known and resolve_tool_alias(tool) == tool and not tool.startswith("mcp__"):
        print_notice(f"warning: There is no tool {tool!r}. Did you mean {near!r}?")


def _read_request(arguments: argparse.Namespace) -> tuple[str, dict[str, Any]]:
    is_command = arguments.shell_command is not None
    if is_command and arguments.tool is None and arguments.input is None:
        return "Bash", {"command": arguments.shell_command}
    if is_command or not arguments.tool or arguments.input is None:
        raise SetupError("Give a shell command, or --tool and --input.")
    try:
        call_input = decode_line(arguments.input.encode(errors="surrogateescape"))
    except ValueError as error:
        raise SetupError(f"--input is not JSON: {error}") from None
    if not isinstance(call_input, dict):
        raise SetupError("--input must be a JSON object.")
    return arguments.tool, cast("dict[str, Any]", call_input)


def _answer_line(line: bytes) -> dict[str, Any]:
    asked: Any = None
    try:
        asked = decode_line(line)
        question = msgspec.convert(asked, ExplainRequest)
    except (ValueError, msgspec.ValidationError) as error:
        answer: dict[str, Any] = {
            "verdict": "ask",
            "parts": [],
            "reason": f"Invalid request: {error}.",
            "code": "call.bad_line",
        }
    else:
        answer = explain_question(question, find_cross_check())
    if isinstance(asked, dict) and "id" in asked:
        return {"id": asked["id"], **answer}
    return answer


def _print_json(answer: dict[str, Any]) -> None:
    write_json(answer)
    sys.stdout.flush()


def _describe_sandbox(sandbox: dict[str, Any]) -> str:
    """Whether the command would run in the sandbox."""
    if sandbox["confined"]:
        return f"it would run inside the sandbox ({sandbox['means']})"
    return to_visible_text(
        " ".join(["it would run outside the sandbox.", *sandbox.get("notes", ())]), exact=True
    )


def _format_reason(said: dict[str, Any]) -> str:
    """The reason and the remedy; proposed rules have lines of their own."""
    remedy = "" if said.get("proposals") else said.get("remedy", "")
    return to_visible_text(join_remedy(said["reason"], remedy), exact=True)


def _format_answer(answer: dict[str, Any]) -> str:
    lines = [f"{_MARKS[answer['verdict']]} {_format_reason(answer)}"]
    for part in answer["parts"]:
        rule = (
            f"  [{to_visible_text(part['rule'])} from {to_visible_text(part['source'])}]"
            if part.get("rule")
            else ""
        )
        lines.append(f"  {_MARKS[part['verdict']]} {to_visible_text(part['text'], exact=True)}")
        lines.append(f"        {_format_reason(part)}{rule}")
    if sandbox := answer.get("sandbox"):
        lines.append(f"  {_describe_sandbox(sandbox)}")
    lines += [
        f"  destructive: {to_visible_text(loss['reason'], exact=True)}"
        for loss in answer.get("destructive", [])
    ]
    for proposal in answer.get("proposals", []):
        lines.append(f"  allowed by the rule {to_visible_text(proposal['rule'], exact=True)}")
        lines.append(f"        in words     {to_visible_text(proposal['meaning'], exact=True)}")
        matches = to_visible_text(", ".join(proposal["would_match"]), exact=True)
        lines.append(f"        matches      {matches}")
        others = to_visible_text(", ".join(proposal["would_not_match"]), exact=True)
        lines.append(f"        not          {others}")
    if answer.get("proposals"):
        leaves = answer.get("proposals_leave_questions")
        lines.append(f"  with these rules it would {'still ask' if leaves else 'run'}")
    return "".join(f"{line}\n" for line in lines)
