"""The forms of git that only look, if the repository's own configuration names no program."""

from __future__ import annotations

import re

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse, resolve
from handaxe.shell.analysis.program_tables import ProgramTable, load_git_forms
from handaxe.shell.analysis.programs.operands import ProofContext, collect_path_uses, make_ref_uses
from handaxe.shell.analysis.programs.options import Arguments, NotProven, read_arguments
from handaxe.shell.analysis.programs.options__word_reader import check_single
from handaxe.shell.analysis.programs.subcommands import PLAIN_GIT_GLOBALS
from handaxe.shell.analysis.walker import ShellState

_CONFIG_KEYS = re.compile(
    r"""(?xi)(user|author|committer|core|init|pull|push|merge|diff|commit|tag|fetch|rebase|color|log
    |status|format|gc|rerere|help|advice|column|feature|index|pack|protocol|receive|i18n|grep|blame
    |apply|checkout|clone|interactive|pager|stash|transfer|worktree|versionsort|gui|safe|alias)\.[\w-]+
    |branch\..+\.(remote|merge|rebase|pushremote|description)|remote\.[^.]+\.(url|pushurl|fetch|push)
    |submodule\..+\.(path|branch|active)|extensions\.\w+|gpg\.format"""
)
_COMMIT_OUTPUT = re.compile(
    r"""(?x)"?\$\(\s*git\s+(?:merge-base|rev-parse)\s+((?:[\w@^~./][\w@^~./{}-]*\s*)+)\)"?
    (?:\.\.\.?[\w@^~./][\w@^~./{}-]*|\.\.\.?|[~^]\d*)?"?"""
)
"""A commit that git itself prints, as in `$(git merge-base A B)..HEAD`."""


def check_git(fields: list[Field], state: ShellState, setting: ProofContext) -> list[PathUse]:
    """The paths a read-only git form names; raises `Refused`."""
    if state.cwds != frozenset({setting.cwd}):
        raise NotProven("git in another directory may run what that directory configures")
    fields = _skip_globals(fields, setting)
    if not fields:
        raise NotProven("git without a sub-command")
    name = fields[0].known
    if len(fields) == 1 and name in ("--version", "-v"):
        return []
    table = load_git_forms().get(name or "")
    if table is None:
        raise NotProven(f"git {fields[0].text} is not in the read-only set")
    words, uses = _read_commit_outputs(fields[1:], table, setting)
    arguments = read_arguments(words, table)
    _check_form(name or "", arguments)
    return [*uses, *collect_path_uses(arguments, f"git {name}", state, setting)]


def _read_commit_outputs(
    fields: list[Field], table: ProgramTable, setting: ProofContext
) -> tuple[list[Field], list[PathUse]]:
    """The words with a commit in place of each `$(git merge-base A B)`; all others single."""
    plain: list[Field] = []
    uses: list[PathUse] = []
    for field in fields:
        found = _COMMIT_OUTPUT.fullmatch(field.text) if field.kind == "unknown" else None
        # Where git finds no commit the word is gone, and an option before it would take the next.
        if found is None or (plain and not _is_option_complete(plain[-1], table)):
            plain.append(check_single(field, "the argument"))
            continue
        plain.append(Field("known", "HEAD", field.text))
        for word in found.group(1).split():
            uses.extend(make_ref_uses(Field("known", word, word), setting))
    return plain, uses


def _is_option_complete(field: Field, table: ProgramTable) -> bool:
    """Whether the word after this one is certainly not the value of an option."""
    if not field.may_be_option:
        return True
    value = field.known or "-"
    name = value.lstrip("-")
    if value.startswith("--"):
        return "=" in name or name in table.flags or name in table.optional
    return name in table.flags or name.isdigit()


def _skip_globals(fields: list[Field], setting: ProofContext) -> list[Field]:
    while fields:
        value = fields[0].known
        if value in PLAIN_GIT_GLOBALS:
            fields = fields[1:]
        elif value == "-C" and len(fields) > 1:
            target = fields[1].known
            if target is None or resolve(target, setting.cwd) != setting.cwd:
                raise NotProven("git -C goes to another directory")
            fields = fields[2:]
        else:
            break
    return fields


def _check_form(name: str, arguments: Arguments) -> None:
    words = [field.known or "?" for field in arguments.operands]
    for option, value in arguments.options:
        text = value.value if value is not None else ""
        if option in ("format", "pretty", "sort") and ("%G" in text or "signature" in text):
            raise NotProven("checking signatures runs another program")
    if name == "config" and len(words) != 1:
        raise NotProven("git config with anything but one key lists or changes configuration")
    if name == "config" and not _CONFIG_KEYS.fullmatch(words[0]):
        raise NotProven(f"the configuration value {words[0]} may hold a secret")
