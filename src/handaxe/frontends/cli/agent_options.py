"""Values of the options of the agent."""

import argparse
import math
from collections.abc import Mapping, Sequence

from handaxe.contract.decision import Allow, Defer, Deny, PermissionRequest
from handaxe.contract.faults import SetupError
from handaxe.frontends.cli.agent_page import IGNORED
from handaxe.permission.prompts import OnAsk

WAIT_VARIABLE = "CLAUDE_CODE_PRINT_BG_WAIT_CEILING_MS"
_AGENTS_S = 600.0
_COMMANDS_S = 120.0
"""The foreground limit of a command; a server would block the run forever."""

_SILENT = {"allow_dangerously_skip_permissions", "thinking"}


def list_ignored_options(arguments: argparse.Namespace) -> list[str]:
    """Options that were given and have no effect here."""
    fields = {one.names[0]: one.names[0][2:].replace("-", "_") for one in IGNORED}
    return [
        name for name, field in fields.items() if getattr(arguments, field) and field not in _SILENT
    ]


async def _defer_question(_request: PermissionRequest) -> Defer:
    """Defer the question: the program that started the run answers later."""
    return Defer()


def choose_on_ask(arguments: argparse.Namespace) -> OnAsk | None:
    """The callback for permission questions that nothing else answers."""
    return _defer_question if arguments.defer_permissions else None


def parse_answers(given: Sequence[str]) -> dict[str, Allow | Deny]:
    """The answers of `--answer` by call id."""
    answers: dict[str, Allow | Deny] = {}
    for text in given:
        call_id, _, word = text.partition("=")
        verdict, _, reason = word.partition(":")
        if not call_id or verdict not in {"allow", "deny"} or call_id in answers:
            what = "names a call twice" if call_id in answers else "is not an answer"
            raise SetupError(f"--answer {text!r} {what}. Say CALL_ID=allow or CALL_ID=deny:WHY.")
        kind = Allow if verdict == "allow" else Deny
        answers[call_id] = kind(reason.strip(), by="user")
    return answers


def is_headless(arguments: argparse.Namespace) -> bool:
    """Whether the run has no user at a terminal."""
    streams = arguments.input_format == arguments.output_format == "stream-json"
    alone = arguments.rewind_files or arguments.init_only
    return bool(arguments.print or streams or alone)


def read_background_wait(given_s: float | None, env: Mapping[str, str]) -> tuple[float, float]:
    """The seconds a run waits for agents, and for commands; 0 in the variable means no limit."""
    if given_s is not None:
        if not given_s >= 0:
            raise SetupError("--background-wait must be 0 or more seconds, or inf.")
        return given_s, given_s
    given_ms = env.get(WAIT_VARIABLE, "")
    if not given_ms.strip().isdecimal():
        return _AGENTS_S, _COMMANDS_S
    wait_s = int(given_ms) / 1000 or math.inf
    return wait_s, wait_s
