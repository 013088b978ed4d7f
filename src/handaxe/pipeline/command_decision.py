"""The rules' decision on a command, refined by checks on the machine.

The text is judged as `handaxe explain` judges it. The checks add what the text lacks: programs that
git would run for the repository, names that mean a program of the project, a second parser, and
symlink targets.
"""

import asyncio
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Decision
from handaxe.contract.faults import BadPath
from handaxe.contract.permission_subjects import CommandSubject
from handaxe.contract.ports.files import ResolvedPath
from handaxe.contract.readable_files import ReadableFiles
from handaxe.permission.decide import JudgedPath, PermissionQuery, Policy
from handaxe.pipeline.command_preflight import check_command_targets
from handaxe.pipeline.context import PipelineContext
from handaxe.pipeline.parse import ParsedCall
from handaxe.pipeline.permission_request import is_shared
from handaxe.text.paths import normalize

if TYPE_CHECKING:
    from handaxe.shell.analysis import PathUse, PathVerdict, ShellDecision

MAX_MATCHES = 2_000
"""Maximum number of glob matches that are checked for symlinks; more need approval."""


async def decide_shell_call(
    request: PermissionQuery, parsed: ParsedCall, ctx: ToolContext, context: PipelineContext
) -> Decision:
    """The rules' decision on a call's command, with symlinks resolved."""
    policy = context.policy()
    subject = next(s for s in parsed.subjects if isinstance(s, CommandSubject))
    from handaxe.permission.shell_commands import (
        Machine,
        analyze_command,
        apply_mode,
        decide_command,
        make_decision,
    )
    from handaxe.shell.analysis import Repository

    known = context.commands
    facts = analyze_command(request, policy, Machine(cwd=ctx.cwd))
    runs_git = any(part.runs_git for part in facts.parts)
    doubt = await known.git_doubt(ctx.cwd) if runs_git else ""
    machine = Machine(
        cwd=ctx.cwd,
        repository=Repository(is_clean=not doubt, doubt=doubt),
        project_programs=await known.project_programs(ctx.cwd),
        sandbox=None if subject.unconfined else known.sandbox(subject),
        ask_irreversible=context.ports[Settings].permissions.ask_irreversible,
    )
    shell = decide_command(facts, policy, machine, tool=request.tool)
    is_compound = facts.commands > 1 and (shell.verdict == "allow" or policy.mode == "plan")
    if is_compound and (count_commands := known.find_cross_check()) is not None:
        # Another program reads a compound command that would be allowed for its content.
        count = await asyncio.to_thread(count_commands, subject.command)

        def cross_check(_text: str) -> int | None:
            return count

        machine = msgspec.structs.replace(machine, cross_check=cross_check)
        shell = decide_command(facts, policy, machine, tool=request.tool)
    decision = make_decision(shell, facts, request, policy)
    decision = await _apply_links(decision, shell, context, machine.sandbox)
    decision = await _apply_read_links(decision, shell, context, machine.sandbox)
    decision = await check_command_targets(decision, shell, parsed.effects, context)
    return apply_mode(decision, facts, policy, machine)


async def _apply_links(
    decision: Decision,
    shell: "ShellDecision",
    context: PipelineContext,
    sandbox: ReadableFiles | None,
) -> Decision:
    """Judge every file operand at its symlink target too."""
    from handaxe.permission.shell_commands import apply_verdict, to_accept_edits

    for use in shell.operands:
        # What may run anyway is followed wherever it leads, so that no link gets round a rule.
        word = await _decide_operand(use, context, beyond=isinstance(decision, Allow))
        if word is not None and word.rule is not None:
            decision = apply_verdict(decision, use.text, word)
    if isinstance(decision, Allow):
        for use in shell.uses:
            word = await _decide_operand(use, context)
            if word is not None and not _is_hidden(use, word, context, sandbox):
                decision = apply_verdict(decision, use.text, word)
        for use in shell.written:
            word = await _decide_operand(use, context, policy=to_accept_edits(context.policy()))
            if word is not None:
                decision = apply_verdict(decision, use.text, word)
    return decision


async def _apply_read_links(
    decision: Decision,
    shell: "ShellDecision",
    context: PipelineContext,
    sandbox: ReadableFiles | None,
) -> Decision:
    """Judge the files that a sandboxed command reads at their targets too."""
    if sandbox is None or not isinstance(decision, Allow):
        return decision
    from handaxe.permission.shell_commands import CONFINED, apply_verdict

    if all(part.reason != CONFINED for part in decision.parts):
        # A rule or a proof lets it run, and has had its own look.
        return decision
    for use in shell.operands:
        word = await _decide_operand(use, context, beyond=True) if use.access == "read" else None
        if word is not None and not _is_hidden(use, word, context, sandbox):
            decision = apply_verdict(decision, use.text, word)
    return decision


def _is_hidden(
    use: "PathUse", word: "PathVerdict", context: PipelineContext, sandbox: ReadableFiles | None
) -> bool:
    """Whether the sandbox hides a file that needs approval for reading; unknown for a glob."""
    if sandbox is None or word.rule is not None or use.access != "read":
        return False
    if use.glob or use.path is None:
        return False
    place = context.files.locate(normalize(use.path), context.workdir.roots, beyond=True)
    return not sandbox.can_read(place.real)


async def _decide_operand(
    use: "PathUse", context: PipelineContext, *, beyond: bool = False, policy: Policy | None = None
) -> "PathVerdict | None":
    """The reason why a file operand needs approval, if its target differs from its name."""
    from handaxe.shell.analysis import PathVerdict

    if use.path is None:
        return None
    if _has_parent_after_link(use, context):
        reason = f"{use.text} goes through a link and back with `..`, so its target is unclear"
        return PathVerdict("ask", reason)
    paths = [use.path]
    if use.glob:
        found = await _expand_glob(use.path, context)
        if found is None:
            return PathVerdict("ask", f"{use.text} matches too many files to check for links")
        paths = found
    worst: PathVerdict | None = None
    for path in paths:
        word = _decide_operand_path(path, use, context, policy or context.policy(), beyond=beyond)
        if word is not None and (worst is None or word.verdict == "deny"):
            worst = word
    return worst


def _decide_operand_path(
    path: str, use: "PathUse", context: PipelineContext, policy: Policy, *, beyond: bool
) -> "PathVerdict | None":
    from handaxe.shell.analysis.paths import is_process_path

    place = _locate_path(path, context)
    if place is None:
        return None
    word = _decide_operand_place(place, use, context, policy, beyond=beyond)
    if is_process_path(place.real) and (word is None or word.verdict != "deny"):
        return _decide_process_link(path, use, policy) or word
    return word


def _decide_operand_place(
    place: ResolvedPath, use: "PathUse", context: PipelineContext, policy: Policy, *, beyond: bool
) -> "PathVerdict | None":
    from handaxe.permission.shell_commands import decide_path

    files, roots = context.files, context.workdir.roots
    path, real = place.path, place.real
    is_linked = use.access == "write" and place.is_final and is_shared(real, context)
    if not place.is_final:
        # Outside the roots links are followed only where looking is allowed.
        near = decide_path(JudgedPath(path=path, real=real, access=use.access), policy)
        if near.verdict != "allow" and not beyond:
            return near if real != path else None
        real = files.locate(real, roots, beyond=True).real
    is_found = use.glob and use.access == "write"
    if real == path and not is_linked and not is_found:
        return None
    word = decide_path(
        JudgedPath(path=path, real=real, access=use.access, hard_link_outside=is_linked), policy
    )
    return word if word.verdict != "allow" else None


def _decide_process_link(path: str, use: "PathUse", policy: Policy) -> "PathVerdict | None":
    """A link below /proc has another target for the command than for handaxe."""
    from handaxe.permission.denied_paths import collect_restricted_paths
    from handaxe.shell.analysis import PathVerdict

    tool = "Read" if use.access == "read" else "Edit"
    for fence in collect_restricted_paths(policy.book):
        if fence.tool == tool:
            reason = f"{path} leads through /proc, so its target is unknown"
            return PathVerdict("ask", reason, fence.rule, fence.source)
    return None


def _locate_path(path: str, context: PipelineContext) -> ResolvedPath | None:
    try:
        return context.files.locate(normalize(path), context.workdir.roots)
    except (BadPath, ValueError):
        # A loop of links, or no path at all: the command will say so itself.
        return None


def _has_parent_after_link(use: "PathUse", context: PipelineContext) -> bool:
    """Whether `..` follows a link: the kernel then resolves it differently than the text says."""
    parts = (use.joined or "").split("/")
    for at, part in enumerate(parts):
        before = "/".join(parts[:at])
        if part != ".." or not before:
            continue
        place = _locate_path(before, context)
        if place is not None and place.real != place.path:
            return True
    return False


async def _expand_glob(pattern: str, context: PipelineContext) -> list[str] | None:
    """The files that a glob matches now; None if there are too many.

    A directory with another target is not entered; the directory stands for its matches.
    """
    found, elsewhere = [""], list[str]()
    for part in pattern.split("/")[1:]:
        if not any(sign in part for sign in "*?["):
            found = [f"{path}/{part}" for path in found]
            continue
        inside: list[str] = []
        for directory in found:
            if not _is_ours(directory, context):
                elsewhere.append(directory or "/")
                continue
            names = await context.files.names(directory or "/")
            inside += [f"{directory}/{name}" for name in names if _is_name_match(name, part)]
            if len(inside) > MAX_MATCHES:
                return None
        found = inside
    return [*found, *elsewhere]


def _is_ours(directory: str, context: PipelineContext) -> bool:
    """Whether handaxe may list a directory: its target is in the working directories."""
    place = _locate_path(directory or "/", context)
    return place is not None and place.is_final


def _is_name_match(name: str, part: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    return fnmatchcase(name, part.replace("[^", "[!"))
