"""Explain whether a call is allowed, asks or is denied, without making it.

A request with its own paths is answered from its text alone: nothing runs and no file is read. In a
session a command is decided as its call would be, with links, git, programs and the sandbox.
"""

from collections.abc import Iterable
from typing import Any

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.call import ToolCall
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault, UnknownTool
from handaxe.contract.faults.shell import OutsideRoots
from handaxe.contract.permission_subjects import (
    CommandSubject,
    HostSubject,
    PathSubject,
    TextSubject,
)
from handaxe.contract.ports.shell import Confiner
from handaxe.permission.decide import JudgedPath, PermissionQuery, Policy, decide
from handaxe.permission.policy import make_policy
from handaxe.permission.shell_commands import Machine, judge_command
from handaxe.pipeline.command_decision import decide_shell_call
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import ParsedCall, parse
from handaxe.pipeline.permission_request import build_permission_query, collect_judged_paths
from handaxe.rules.grammar import parse_rule
from handaxe.rules.modes import parse_mode
from handaxe.rules.tool_families import COMMAND_TOOLS, Behaviour, resolve_tool_alias
from handaxe.schema.validate import InputProblems, read_input
from handaxe.session.workdir import Workdir
from handaxe.shell.analysis import CrossCheck, Repository
from handaxe.text.paths import is_inside
from handaxe.tools import build_loaders


class ExplainRules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules of a request."""

    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []


class ExplainRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `handaxe explain --jsonl`."""

    tool: str
    input: dict[str, Any] = {}
    mode: str = "default"
    rules: ExplainRules = ExplainRules()
    cwd: str | None = None
    home: str = "/home/dev"
    working_dirs: list[str] | None = None
    git_clean: bool = True
    id: Any = None


def explain_question(question: ExplainRequest, cross_check: CrossCheck | None) -> dict[str, Any]:
    """The answer to a request with its own rules and paths."""
    mode = parse_mode(question.mode)
    if mode is None:
        return _make_unreadable(f"{question.mode!r} is not a permission mode.")
    if question.working_dirs is not None and not question.working_dirs:
        return _make_unreadable("working_dirs must not be empty; name a directory or leave it out.")
    roots = question.working_dirs or [question.cwd or "/repo"]
    if not all(place.startswith("/") for place in (*roots, question.cwd or "/", question.home)):
        return _make_unreadable("cwd, home and working_dirs must be absolute paths.")
    policy = make_policy(
        _parse_rules(question.rules),
        mode=mode,
        roots=roots,
        home=question.home,
        cwd=question.cwd or roots[0],
    )
    workdir = Workdir(policy.roots, home=question.home)
    workdir.current = policy.cwd
    return explain(
        question.tool,
        question.input,
        policy,
        workdir,
        git_clean=question.git_clean,
        cross_check=cross_check,
    )


async def explain_in_session(
    tool: str, call_input: dict[str, Any], context: PipelineContext, cross_check: CrossCheck | None
) -> dict[str, Any]:
    """The verdict of a call in a session, and whether a sandbox would confine it.

    Hooks do not run.
    """
    place, policy = context.workdir, context.policy()
    if not _is_command(tool, call_input):
        if any(own.name == tool for own in context.catalog.own_tools):
            return _explain_own_tool(tool, call_input, context)
        return explain(tool, call_input, policy, place, cross_check=cross_check)
    try:
        parsed = parse(ToolCall("explain", tool, call_input), context)
        cwd = _resolve_directory(parsed.tool.starts_in(parsed.args), place)
    except UnknownTool:
        return explain(tool, call_input, policy, place, cross_check=cross_check)
    except ToolFault as fault:
        return _make_unreadable(str(fault))
    ctx = ToolContext("explain", context.ports, parsed.tool.reach, _ignore_report, cwd)
    request = build_permission_query(parsed, collect_judged_paths(parsed, context))
    decision = await decide_shell_call(request, parsed, ctx, context)
    return {**decision.to_json(), **_describe_confinement(parsed, context)}


def _ignore_report(_: object) -> None:
    """Drop the event: nothing runs."""


def _describe_confinement(parsed: ParsedCall, context: PipelineContext) -> dict[str, Any]:
    """Whether the command would run in the sandbox, if one is enabled."""
    settings: Settings = context.ports[Settings]
    if not settings.sandbox.enabled:
        return {}
    confiner: Confiner = context.ports[Confiner]
    subject = next(one for one in parsed.subjects if isinstance(one, CommandSubject))
    is_confined = confiner.is_confining(subject.command, unconfined=subject.unconfined)
    return {"sandbox": {"confined": is_confined, **msgspec.to_builtins(confiner.level)}}


def explain(
    tool: str,
    call_input: dict[str, Any],
    policy: Policy,
    workdir: Workdir,
    *,
    git_clean: bool = True,
    cross_check: CrossCheck | None = None,
) -> dict[str, Any]:
    """The verdict of a call with its parts and reasons."""
    if _is_command(tool, call_input):
        try:
            cwd = _resolve_directory(call_input.get("cwd"), workdir)
        except ToolFault as fault:
            return _make_unreadable(str(fault))
        machine = Machine(
            cwd=cwd,
            repository=Repository(is_clean=git_clean),
            cross_check=cross_check,
        )
        request = PermissionQuery(tool=tool, input=call_input, command=call_input["command"])
        return judge_command(request, policy, machine).to_json()
    return _explain_tool_call(tool, call_input, policy, workdir)


def _is_command(tool: str, call_input: dict[str, Any]) -> bool:
    command = call_input.get("command")
    # An empty command next to a web socket does not count.
    is_text = isinstance(command, str) and bool(command.strip() or not call_input.get("ws"))
    return is_text and resolve_tool_alias(tool) in COMMAND_TOOLS


def _resolve_directory(named: object, workdir: Workdir) -> str:
    """The paths of a request as text, without reading the disk."""
    if not named or not isinstance(named, str):
        return workdir.current
    path = workdir.resolve(named)
    if not any(is_inside(path, root) for root in workdir.roots):
        raise OutsideRoots(named, workdir.roots)
    return path


def _explain_tool_call(
    tool: str, call_input: dict[str, Any], policy: Policy, workdir: Workdir
) -> dict[str, Any]:
    try:
        request = _build_request(tool, call_input, workdir)
    except (InputProblems, ToolFault) as problem:
        return _make_unreadable(str(problem))
    return _explain_request(request, policy)


def _explain_own_tool(
    tool: str, call_input: dict[str, Any], context: PipelineContext
) -> dict[str, Any]:
    """The verdict of a call of an own tool, from its effects and subjects."""
    try:
        parsed = parse(ToolCall("explain", tool, call_input), context)
    except ToolFault as fault:
        return _make_unreadable(str(fault))
    request = build_permission_query(parsed, collect_judged_paths(parsed, context))
    return _explain_request(request, context.policy())


def _explain_request(request: PermissionQuery, policy: Policy) -> dict[str, Any]:
    decision = decide(request, policy)
    shown = [path.path for path in request.paths] or [*request.texts, *request.hosts]
    shown = shown or [request.tool]
    parts = [
        {
            "text": text,
            "verdict": decision.verdict,
            "rule": decision.rule,
            "source": decision.source,
            "reason": decision.reason,
            **({"remedy": decision.remedy} if decision.remedy else {}),
        }
        for text in shown
    ]
    return {**decision.to_json(), "parts": parts}


def _build_request(name: str, call_input: dict[str, Any], workdir: Workdir) -> PermissionQuery:
    load = build_loaders().get(name) or build_loaders().get(resolve_tool_alias(name))
    if load is None:
        address = call_input.get("url")
        whole = msgspec.json.encode(call_input, enc_hook=str).decode()
        # Rules for own tools match only addresses.
        text = address if isinstance(address, str) else whole
        return PermissionQuery(tool=name, texts=(text,), input=call_input, confined=False)
    tool = load()
    args, _ = read_input(tool.args_type, call_input)
    subjects, effects = tool.subjects(args), tool.effects_of(args)
    paths: list[JudgedPath] = []
    for subject in subjects:
        if isinstance(subject, PathSubject):
            place = workdir.resolve(subject.path)
            paths.append(JudgedPath(place, place, subject.access, subject.field))
    return PermissionQuery(
        tool=tool.name,
        aliases=tool.aliases,
        read_only=effects.is_read_only,
        paths=tuple(paths),
        texts=tuple(s.text for s in subjects if isinstance(s, TextSubject)),
        hosts=tuple(s.host for s in subjects if isinstance(s, HostSubject)),
        input=call_input,
        asks_person=tool.asks_person,
        confined=effects.is_confined,
        external=effects.external_names,
    )


def _parse_rules(rules: ExplainRules) -> list[Any]:
    listed: dict[Behaviour, Iterable[str]] = {
        "allow": rules.allow,
        "ask": rules.ask,
        "deny": rules.deny,
    }
    return [
        parse_rule(text, behaviour, source="flags")
        for behaviour, texts in listed.items()
        for text in texts
    ]


def _make_unreadable(problem: str) -> dict[str, Any]:
    """An unreadable request is never allowed."""
    return {
        "verdict": "ask",
        "by": "builtin",
        "rule": None,
        "source": None,
        "reason": f"Invalid request: {problem}",
        "parts": [],
        "code": "call.bad_line",
    }
