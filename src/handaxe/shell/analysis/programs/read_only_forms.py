"""Read-only forms of git, if the repository's own configuration names no program."""

from __future__ import annotations

import re

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse, resolve
from handaxe.shell.analysis.program_tables import ProgramTable, load_git_forms, split_names
from handaxe.shell.analysis.programs.operands import (
    ProofContext,
    check_path,
    collect_path_uses,
    make_ref_uses,
)
from handaxe.shell.analysis.programs.options import (
    Arguments,
    NotProven,
    check_single,
    read_arguments,
)
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
"""A commit that git prints, as in `$(git merge-base A B)..HEAD`."""


def check_git(fields: list[Field], state: ShellState, setting: ProofContext) -> list[PathUse]:
    """The paths in a read-only git form; raises `NotProven` otherwise."""
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
    """The words with a commit in place of each `$(git merge-base A B)`."""
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
    """Whether the next word is certainly not the value of an option."""
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


_TAR_LETTERS = frozenset("tvzjJf")
_TAR_LONG = split_names("--list --verbose --gzip --bzip2 --xz --zstd")


def check_tar(
    fields: list[Field], _table: ProgramTable, state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """`tar -tf archive`: list a local archive."""
    words = _require_known(fields, "tar")
    if words and not words[0].startswith("-"):
        words[0] = f"-{words[0]}"
    archive, lists, at = None, False, 0
    while at < len(words):
        word, at = words[at], at + 1
        if word.startswith("--file="):
            archive = word.removeprefix("--file=")
        elif word in _TAR_LONG:
            lists = lists or word == "--list"
        elif word.startswith("-") and _TAR_LETTERS.issuperset(word[1:]) and len(word) > 1:
            lists = lists or "t" in word
            if "f" in word:
                if word.count("f") > 1 or not word.endswith("f") or at >= len(words):
                    raise NotProven(f"{word} of tar is not plain")
                archive, at = words[at], at + 1
        elif word.startswith("-"):
            raise NotProven(f"the option {word} of tar is not known to be harmless")
    if not lists or archive is None:
        raise NotProven("only tar -t with -f is read-only")
    if ":" in archive or archive.startswith("-"):
        raise NotProven("tar would fetch the archive from another machine")
    return check_path(Field("known", archive, archive), state)


def _require_known(fields: list[Field], program: str) -> list[str]:
    words = [field.known for field in fields]
    if any(word is None for word in words):
        raise NotProven(f"the arguments of {program} are unknown before it runs")
    return [word for word in words if word is not None]


PRIMARIES = split_names(
    "-print -print0 -ls -prune -quit -empty -depth -mount -xdev -daystart -readable -writable "
    "-executable -true -false -not -a -o -and -or -nouser -nogroup -noleaf ! ( ) , "
    "-ignore_readdir_race"
)
"""Words of an expression without a value."""
VALUED_PRIMARIES = split_names(
    "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex "
    "-regextype -type -xtype -size -mtime -atime -ctime -mmin -amin -cmin -maxdepth -mindepth "
    "-perm -user -group -uid -gid -links -inum -fstype -used -printf -context"
)
"""Words of an expression with a value that opens no file."""
_PATHS = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})


def check_find(fields: list[Field], state: ShellState) -> list[PathUse]:
    """The starting points of a find that runs and writes nothing; raises `NotProven` otherwise."""
    at = 0
    while at < len(fields) and fields[at].known in ("-H", "-P"):
        at += 1
    uses: list[PathUse] = []
    while at < len(fields) and not _is_expression_start(fields[at]):
        uses.extend(check_path(fields[at], state))
        at += 1
    while at < len(fields):
        word = fields[at].known
        at += 1
        if word is None:
            raise NotProven(f"{fields[at - 1].text} may expand to an action of find")
        if word in PRIMARIES:
            continue
        if word not in VALUED_PRIMARIES and word not in _PATHS and not word.startswith("-newer"):
            raise NotProven(f"the expression {word} of find is not known to be harmless")
        if at >= len(fields):
            raise NotProven(f"{word} has no value")
        if word in _PATHS:
            uses.extend(check_path(fields[at], state))
        elif word.startswith("-newer") and not word.endswith("t"):
            raise NotProven(f"the expression {word} of find is not known to be harmless")
        at += 1
    return uses


def _is_expression_start(field: Field) -> bool:
    return field.may_be_option or field.known in ("(", ")", "!", ",")
