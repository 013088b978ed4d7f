"""Preflight checks on the disk before a command runs; they only make the decision stricter.

The text shows what a command would read and write; the checks show what exists: the names in a
copied tree, links, files with secrets below a searched directory.
"""

import asyncio
import posixpath
from typing import TYPE_CHECKING

from handaxe.contract.decision import Allow, Decision
from handaxe.contract.effects import Effects
from handaxe.permission.decide import JudgedPath, Policy
from handaxe.permission.protected_paths import find_protected_name
from handaxe.pipeline.context import DiskProbe, PipelineContext
from handaxe.text.secrets import is_env_file

if TYPE_CHECKING:
    from handaxe.shell.analysis import PathUse, PathVerdict, ShellDecision, TreeCopy
    from handaxe.shell.analysis.facts import CommandPart, ListedOperands, RecursiveRead


_GIT_FILES = frozenset({"head", "config", "objects", "refs", ".git", "commondir", "gitdir"})
"""Names that make git treat a directory as a repository or choose its configuration."""


async def check_command_targets(
    decision: Decision, shell: "ShellDecision", effects: Effects, context: PipelineContext
) -> Decision:
    """The decision after the targets of an allowed command were checked."""
    if context.commands.disk is None or not isinstance(decision, Allow):
        return decision
    disk = context.commands.disk()
    from handaxe.permission.shell_commands import apply_verdict, to_accept_edits

    for copy in shell.trees:
        word = await asyncio.to_thread(_judge_tree, copy, disk, to_accept_edits(context.policy()))
        if word is None and len(shell.parts) > 1:
            word = await asyncio.to_thread(_judge_links, copy, disk)
        if word is not None:
            decision = apply_verdict(decision, copy.text, word)
    if (word := _judge_order(shell)) is not None:
        decision = apply_verdict(decision, shell.parts[-1].text, word)
    for part in shell.ruled:
        word = await asyncio.to_thread(_judge_below, part, disk, to_accept_edits(context.policy()))
        word = word or await _judge_losses(part, effects, context)
        if word is not None:
            decision = apply_verdict(decision, part.text, word)
    for part in shell.proved:
        word = await asyncio.to_thread(_judge_reading, part, disk, context.policy())
        if word is not None:
            decision = apply_verdict(decision, part.text, word)
    return decision


def _judge_order(shell: "ShellDecision") -> "PathVerdict | None":
    """The reason why an earlier part invalidates a check for a later part."""
    from handaxe.shell.analysis import PathVerdict
    from handaxe.shell.analysis.effects.worktree_escape import is_repository_change

    written = [use.path or "" for use in (*shell.uses, *shell.written) if use.access == "write"]
    makes_repository = any(path.rpartition("/")[2].lower() in _GIT_FILES for path in written)
    makes_repository = makes_repository or any(map(is_repository_change, shell.ruled))
    for part in shell.proved if len(shell.parts) > 1 else ():
        if part.runs_git and (shell.trees or makes_repository):
            changed = "another repository or configuration"
            return PathVerdict("ask", f"{part.text} may find {changed} by then")
        reads_trees = any(command.files.sweeps for command in part.commands)
        reads_trees = reads_trees or part.listed is not None or any(u.sweeps for u in part.reads)
        if reads_trees and shell.trees:
            return PathVerdict("ask", f"{part.text} may find other files by then")
    return None


async def _judge_losses(
    part: "CommandPart", effects: Effects, context: PipelineContext
) -> "PathVerdict | None":
    """The reason why something that a rule lets a command destroy cannot be undone."""
    from handaxe.shell.analysis import PathVerdict

    if context.checkpoints is None:
        return None
    for loss in part.losses:
        paths = tuple(part.cwds) if loss.in_checkout else loss.paths
        if loss.form == "redirection" or loss.irreversible or not paths:
            continue
        reason = await context.checkpoints.find_loss(effects, paths)
        if reason:
            return PathVerdict("ask", f"it {loss.reason}, which cannot be undone: {reason}")
    return None


def _judge_tree(copy: "TreeCopy", disk: DiskProbe, policy: Policy) -> "PathVerdict | None":
    """The reason why the names in a copied tree or archive need approval."""
    from handaxe.permission.shell_commands import decide_path
    from handaxe.shell.analysis import PathVerdict

    if copy.source is None or copy.target is None:
        return PathVerdict("ask", f"the names that {copy.text} writes are unknown before it runs")
    if copy.makes_link:
        return None
    lists = disk.list_archive if copy.is_archive else disk.list_tree
    names = lists(copy.source)
    if names is None:
        return PathVerdict(
            "ask", f"the names that {copy.text} writes cannot be read, or are too many"
        )
    target = copy.target
    if copy.name and disk.is_directory(target):
        target = f"{target}/{copy.name}"
    has_rules = _has_edit_restrictions(policy)
    exists = disk.is_directory(target)
    for name in names:
        path = posixpath.normpath(f"{target}/{name}")
        is_link = exists and disk.is_link(path)
        if not (has_rules or is_link or find_protected_name(path) or ".." in name):
            continue
        real = disk.resolve_links(path) if is_link else path
        word = decide_path(JudgedPath(path=path, real=real, access="write"), policy)
        if word.verdict != "allow":
            return word
    return None


def _judge_below(part: "CommandPart", disk: DiskProbe, policy: Policy) -> "PathVerdict | None":
    """The reason why a file below a removed, moved or changed directory needs approval."""
    from handaxe.permission.shell_commands import decide_path
    from handaxe.shell.analysis import PathVerdict

    if not _has_edit_restrictions(policy):
        return None
    changed = [use for loss in part.losses for use in loss.targets]
    changed += [use for command in part.commands for use in command.files.moved]
    for pattern in dict.fromkeys(use.path for use in changed if use.path):
        for place in disk.expand_glob(pattern) or (pattern,):
            names = disk.list_tree(place)
            if names is None:
                return PathVerdict("ask", f"{place} holds too many files to check")
            for name in names:
                path = f"{place}/{name}"
                word = decide_path(JudgedPath(path=path, real=path, access="write"), policy)
                if word.verdict != "allow" and word.rule is not None:
                    return word
    return None


def _has_edit_restrictions(policy: Policy) -> bool:
    return any(rule.behaviour != "allow" and rule.tool == "Edit" for rule in policy.rules)


def _judge_links(copy: "TreeCopy", disk: DiskProbe) -> "PathVerdict | None":
    """The reason why later parts of a command may follow links that this part creates."""
    from handaxe.shell.analysis import PathVerdict

    is_link = copy.makes_link or copy.source is None
    if is_link or disk.has_link(copy.source or "/", is_archive=copy.is_archive):
        return PathVerdict("ask", f"{copy.text}: later parts could follow links that it creates")
    return None


def _judge_reading(part: "CommandPart", disk: DiskProbe, policy: Policy) -> "PathVerdict | None":
    """The reason why a read-only command would show a file that needs approval."""
    looks = (
        _judge_sweep(part, disk, policy),
        *(_judge_followed(use, disk, policy) for use in part.reads if use.sweeps),
        _judge_listing(part.listed, disk, policy) if part.listed is not None else None,
        _judge_history(part, disk, policy),
    )
    return next(filter(None, looks), None)


def _judge_sweep(part: "CommandPart", disk: DiskProbe, policy: Policy) -> "PathVerdict | None":
    from handaxe.shell.analysis import PathVerdict

    for sweep in (sweep for command in part.commands for sweep in command.files.sweeps):
        found = _find_env_file(sweep, disk)
        if found is None:
            return PathVerdict("ask", f"{sweep.use.text} holds too many files to check")
        if found and _is_asked_for(found, policy):
            return PathVerdict("ask", f"it would show {found}, which may hold secrets")
    return None


def _judge_history(part: "CommandPart", disk: DiskProbe, policy: Policy) -> "PathVerdict | None":
    from handaxe.shell.analysis import PathVerdict

    history = part.history
    if history is None or not part.cwds:
        return None
    directory = min(part.cwds)
    found = disk.find_tracked_env_file(
        directory, is_env_file, past=history.is_past, paths=history.paths
    )
    if found is None:
        return PathVerdict("ask", "it is unknown whether it would show files with secrets")
    if found and _is_asked_for(f"{directory}/{found}", policy):
        return PathVerdict("ask", f"it can show {found}, which may hold secrets")
    return None


def _judge_followed(use: "PathUse", disk: DiskProbe, policy: Policy) -> "PathVerdict | None":
    """The reason why a command that follows links below a directory would leave it."""
    from handaxe.shell.analysis import PathVerdict

    names = disk.list_tree(use.path or "/")
    if names is None:
        return PathVerdict("ask", f"{use.text} holds too many files to check")
    for name in names:
        path = f"{use.path}/{name}"
        if disk.is_link(path):
            return PathVerdict("ask", f"{path} is a link, and the command follows links")
        if is_env_file(name.rpartition("/")[2]) and _is_asked_for(path, policy):
            return PathVerdict("ask", f"it would show {path}, which may hold secrets")
    return None


def _judge_listing(
    listed: "ListedOperands", disk: DiskProbe, policy: Policy
) -> "PathVerdict | None":
    """The reason why the names listed for `xargs` need approval."""
    from handaxe.shell.analysis import PathVerdict
    from handaxe.shell.analysis.programs.listed_operands import find_listed_name_problem

    names = disk.list_names(listed.producer_argv, listed.cwd, null=listed.null_separated)
    if names is None:
        return PathVerdict("ask", "it lists too many names to check")
    if problem := find_listed_name_problem(names, listed):
        return PathVerdict("ask", problem)
    for name in names:
        path = posixpath.normpath(posixpath.join(listed.cwd, name))
        if disk.is_link(path):
            return PathVerdict("ask", f"the listed name {name} is a link or leads through one")
        if _is_asked_for(path, policy):
            return PathVerdict("ask", f"it would show {path}, which needs approval to read")
    return None


def _find_env_file(sweep: "RecursiveRead", disk: DiskProbe) -> str | None:
    """A file below a directory that may hold secrets; empty for none, None above the limit."""
    if sweep.use.path is None:
        return None
    places = disk.expand_glob(sweep.use.path) if sweep.use.glob else [sweep.use.path]
    if places is None:
        return None
    for place in places:
        found = disk.find_named(
            place,
            lambda name: is_env_file(name) and _is_name_match(name, sweep.only_files),
            shown_only=sweep.shown_only,
            without=(*sweep.without_files, *sweep.without_directories),
        )
        if found is None or found:
            return found
    return ""


def _is_name_match(name: str, patterns: tuple[str, ...]) -> bool:
    from fnmatch import fnmatchcase

    last = (pattern.rpartition("/")[2] for pattern in patterns)
    return not patterns or any(fnmatchcase(name, pattern) for pattern in last)


def _is_asked_for(path: str, policy: Policy) -> bool:
    from handaxe.permission.shell_commands import decide_path

    return decide_path(JudgedPath(path=path, real=path, access="read"), policy).verdict != "allow"
