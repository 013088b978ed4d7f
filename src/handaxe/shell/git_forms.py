"""The forms of git that only look, if the repository's own configuration names no program."""

from __future__ import annotations

import re

from handaxe.shell.fields import Field
from handaxe.shell.flow import State
from handaxe.shell.operands import Setting, path_uses
from handaxe.shell.options import Arguments, Refused, read_arguments
from handaxe.shell.places import PathUse, resolve
from handaxe.shell.subcommands import PLAIN_GIT_GLOBALS
from handaxe.shell.tables import git_forms

_CONFIG_KEYS = (
    r"(?i)(user\.(name|email|signingkey)|core\.\w+|init\.\w+|pull\.\w+|push\.\w+|merge\.\w+|diff\.\w+"
    r"|branch\..+\.(remote|merge|rebase)|remote\..+\.(fetch|push))"
)


def git_uses(fields: list[Field], state: State, setting: Setting) -> list[PathUse]:
    """The paths a read-only git form names; raises `Refused`."""
    if state.cwds != frozenset({setting.cwd}):
        raise Refused("git in another directory may run what that directory configures")
    if not setting.git_clean:
        told = "the repository's configuration names a program that git would run"
        raise Refused(setting.git_doubt or told)
    if any(field.kind == "glob" for field in fields):
        raise Refused("an unquoted glob may expand to options of git")
    fields = _skip_globals(fields, setting)
    if not fields:
        raise Refused("git without a sub-command")
    name = fields[0].known
    if len(fields) == 1 and name in ("--version", "-v"):
        return []
    table = git_forms().get(name or "")
    if table is None:
        raise Refused(f"git {fields[0].text} is not in the read-only set")
    arguments = read_arguments(fields[1:], table)
    _check_form(name or "", arguments)
    return path_uses(arguments, f"git {name}", state, setting)


def _skip_globals(fields: list[Field], setting: Setting) -> list[Field]:
    while fields:
        value = fields[0].known
        if value in PLAIN_GIT_GLOBALS:
            fields = fields[1:]
        elif value == "-C" and len(fields) > 1:
            target = fields[1].known
            if target is None or resolve(target, setting.cwd) != setting.cwd:
                raise Refused("git -C goes to another directory")
            fields = fields[2:]
        else:
            break
    return fields


def _check_form(name: str, arguments: Arguments) -> None:
    words = [field.known or "?" for field in arguments.operands]
    for option, value in arguments.options:
        text = value.value if value is not None else ""
        if option in ("format", "pretty", "sort") and ("%G" in text or "signature" in text):
            raise Refused("checking signatures runs another program")
    first = words[0] if words else ""
    if name == "remote" and words and not (first == "get-url" and len(words) == 2):
        raise Refused("git remote with operands changes or contacts a remote")
    if name == "reflog" and first in ("expire", "delete", "exists", "drop", "write"):
        raise Refused("git reflog with this operand changes the log")
    if name == "stash" and first not in ("list", "show"):
        raise Refused("git stash changes the working tree")
    if name in ("worktree", "notes") and first not in ("list", "show"):
        raise Refused(f"git {name} changes the repository")
    if name == "config" and len(words) != 1:
        raise Refused("git config with anything but one key lists or changes configuration")
    if name == "config" and not re.fullmatch(_CONFIG_KEYS, first):
        raise Refused(f"the configuration value {first} may hold a secret")
