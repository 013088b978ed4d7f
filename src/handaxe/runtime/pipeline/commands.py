"""The word of the rules on a call, with what only a look at the machine tells of its command.

The text of a command is judged as `handaxe explain` judges it. Then what the text cannot say:
whether git would run a program of the repository's choosing, whether a name means a program of
the project, whether a second reader counts the same commands, and where links lead.
"""

import asyncio
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Decision
from handaxe.contract.faults import BadPath
from handaxe.contract.ports.files import Located
from handaxe.contract.readable_files import ReadableFiles
from handaxe.contract.subjects import CommandSubject
from handaxe.runtime.permission.decide import JudgedPath, Policy, Request
from handaxe.runtime.pipeline.collaborators import Collaborators
from handaxe.runtime.pipeline.command_look import look_ahead
from handaxe.runtime.pipeline.parse import Parsed
from handaxe.runtime.pipeline.requests import is_shared
from handaxe.settings.model import Settings
from handaxe.text.paths import normalize

if TYPE_CHECKING:
    from handaxe.shell import PathUse, PathVerdict, ShellDecision

MAX_MATCHES = 2_000
"""So many files that a glob names are looked at for links; for more a person is asked."""


async def command_word(
    request: Request, parsed: Parsed, ctx: ToolContext, among: Collaborators
) -> Decision:
    """What the rules say of a call's command, followed to the files it names."""
    policy = among.policy()
    subject = next(s for s in parsed.subjects if isinstance(s, CommandSubject))
    from handaxe.runtime.permission.commands import (
        Machine,
        apply_mode,
        decide_command,
        make_decision,
        read_facts,
    )
    from handaxe.shell import Repository

    known = among.commands
    facts = read_facts(request, policy, Machine(cwd=ctx.cwd))
    runs_git = any(part.runs_git for part in facts.parts)
    doubt = await known.git_doubt(ctx.cwd) if runs_git else ""
    machine = Machine(
        cwd=ctx.cwd,
        repository=Repository(is_clean=not doubt, doubt=doubt),
        project_programs=await known.project_programs(ctx.cwd),
        sandbox=None if subject.unconfined else known.sandbox(subject),
        ask_irreversible=among.offers[Settings].permissions.ask_irreversible,
    )
    shell = decide_command(facts, policy, machine, tool=request.tool)
    is_compound = facts.commands > 1 and (shell.verdict == "allow" or policy.mode == "plan")
    if is_compound and known.count_commands is not None:
        # Another program reads a compound command that would be allowed for its content.
        count = await asyncio.to_thread(known.count_commands, subject.command)

        def second_opinion(_text: str) -> int | None:
            return count

        machine = msgspec.structs.replace(machine, second_opinion=second_opinion)
        shell = decide_command(facts, policy, machine, tool=request.tool)
    decision = make_decision(shell, facts, request, policy)
    decision = await _after_links(decision, shell, among, machine.sandbox)
    decision = await _after_links_read(decision, shell, among, machine.sandbox)
    decision = await look_ahead(decision, shell, parsed.effects, among)
    return apply_mode(decision, facts, policy, machine)


async def _after_links(
    decision: Decision, shell: "ShellDecision", among: Collaborators, sandbox: ReadableFiles | None
) -> Decision:
    """The decision after every file operand was judged where its links lead, too."""
    from handaxe.runtime.permission.commands import apply_verdict, for_ruled

    for use in shell.operands:
        # What may run anyway is followed wherever it leads, so that no link gets round a rule.
        word = await _word_on(use, among, beyond=isinstance(decision, Allow))
        if word is not None and word.rule is not None:
            decision = apply_verdict(decision, use.text, word)
    if isinstance(decision, Allow):
        for use in shell.uses:
            word = await _word_on(use, among)
            if word is not None and not _is_hidden(use, word, among, sandbox):
                decision = apply_verdict(decision, use.text, word)
        for use in shell.written:
            word = await _word_on(use, among, policy=for_ruled(among.policy()))
            if word is not None:
                decision = apply_verdict(decision, use.text, word)
    return decision


async def _after_links_read(
    decision: Decision, shell: "ShellDecision", among: Collaborators, sandbox: ReadableFiles | None
) -> Decision:
    """The decision on a confined command after the files it reads were followed, too."""
    if sandbox is None or not isinstance(decision, Allow):
        return decision
    from handaxe.runtime.permission.commands import CONFINED, apply_verdict

    if all(part.reason != CONFINED for part in decision.parts):
        # A rule or a proof lets it run, and has had its own look.
        return decision
    for use in shell.operands:
        word = await _word_on(use, among, beyond=True) if use.access == "read" else None
        if word is not None and not _is_hidden(use, word, among, sandbox):
            decision = apply_verdict(decision, use.text, word)
    return decision


def _is_hidden(
    use: "PathUse", word: "PathVerdict", among: Collaborators, sandbox: ReadableFiles | None
) -> bool:
    """Whether the sandbox hides what a question about reading is about; not known of a glob."""
    if sandbox is None or word.rule is not None or use.access != "read":
        return False
    if use.glob or use.path is None:
        return False
    place = among.files.locate(normalize(use.path), among.workdir.roots, beyond=True)
    return not sandbox.can_read(place.real)


async def _word_on(
    use: "PathUse", among: Collaborators, *, beyond: bool = False, policy: Policy | None = None
) -> "PathVerdict | None":
    """Why a file operand may not be used, if it leads elsewhere than its name says."""
    from handaxe.shell import PathVerdict

    if use.path is None:
        return None
    if _goes_back_through_link(use, among):
        reason = f"{use.text} goes through a link and back with `..`, so where it leads is unclear"
        return PathVerdict("ask", reason)
    paths = [use.path]
    if use.glob:
        found = await _matches(use.path, among)
        if found is None:
            return PathVerdict("ask", f"{use.text} names too many files to look for links")
        paths = found
    worst: PathVerdict | None = None
    for path in paths:
        word = _word_on_path(path, use, among, policy or among.policy(), beyond=beyond)
        if word is not None and (worst is None or word.verdict == "deny"):
            worst = word
    return worst


def _word_on_path(
    path: str, use: "PathUse", among: Collaborators, policy: Policy, *, beyond: bool
) -> "PathVerdict | None":
    from handaxe.shell.places import goes_through_process

    place = _located(path, among)
    if place is None:
        return None
    word = _word_on_place(place, use, among, policy, beyond=beyond)
    if goes_through_process(place.real) and (word is None or word.verdict != "deny"):
        return _behind_process(path, use, policy) or word
    return word


def _word_on_place(
    place: Located, use: "PathUse", among: Collaborators, policy: Policy, *, beyond: bool
) -> "PathVerdict | None":
    from handaxe.runtime.permission.commands import verdict_on

    files, roots = among.files, among.workdir.roots
    path, real = place.path, place.real
    is_linked = use.access == "write" and place.is_final and is_shared(real, among)
    if not place.is_final:
        # Outside the roots links are followed only where looking is allowed.
        near = verdict_on(JudgedPath(path=path, real=real, access=use.access), policy)
        if near.verdict != "allow" and not beyond:
            return near if real != path else None
        real = files.locate(real, roots, beyond=True).real
    is_found = use.glob and use.access == "write"
    if real == path and not is_linked and not is_found:
        return None
    word = verdict_on(
        JudgedPath(path=path, real=real, access=use.access, hard_link_outside=is_linked), policy
    )
    return word if word.verdict != "allow" else None


def _behind_process(path: str, use: "PathUse", policy: Policy) -> "PathVerdict | None":
    """A link to where a process stands leads a command elsewhere than it would lead us."""
    from handaxe.runtime.permission.closed import fences_of
    from handaxe.shell import PathVerdict

    tool = "Read" if use.access == "read" else "Edit"
    for fence in fences_of(policy.book):
        if fence.tool == tool:
            reason = f"{path} leads through /proc, so which file it names is not known"
            return PathVerdict("ask", reason, fence.rule, fence.source)
    return None


def _located(path: str, among: Collaborators) -> Located | None:
    try:
        return among.files.locate(normalize(path), among.workdir.roots)
    except (BadPath, ValueError):
        # A loop of links, or no path at all: the command will say so itself.
        return None


def _goes_back_through_link(use: "PathUse", among: Collaborators) -> bool:
    """Whether `..` stands behind a link: the kernel then goes elsewhere than the text says."""
    parts = (use.joined or "").split("/")
    for at, part in enumerate(parts):
        before = "/".join(parts[:at])
        if part != ".." or not before:
            continue
        place = _located(before, among)
        if place is not None and place.real != place.path:
            return True
    return False


async def _matches(pattern: str, among: Collaborators) -> list[str] | None:
    """The files that a glob names now; None if there are too many.

    A directory that leads elsewhere is not looked into; it stands for what the glob finds there.
    """
    found, elsewhere = [""], list[str]()
    for part in pattern.split("/")[1:]:
        if not any(sign in part for sign in "*?["):
            found = [f"{path}/{part}" for path in found]
            continue
        inside: list[str] = []
        for directory in found:
            if not _is_ours(directory, among):
                elsewhere.append(directory or "/")
                continue
            names = await among.files.names(directory or "/")
            inside += [f"{directory}/{name}" for name in names if _fits(name, part)]
            if len(inside) > MAX_MATCHES:
                return None
        found = inside
    return [*found, *elsewhere]


def _is_ours(directory: str, among: Collaborators) -> bool:
    """Whether a directory may be looked at: it lies in the working directories, links followed."""
    place = _located(directory or "/", among)
    return place is not None and place.is_final


def _fits(name: str, part: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    return fnmatchcase(name, part.replace("[^", "[!"))
