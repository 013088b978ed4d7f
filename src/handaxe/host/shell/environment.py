"""What a command finds in its environment: the user's own, without traps for an unattended shell.

Everything the user has goes in, so that the tools of version managers are found; out stay names
that settings list, and what would make a shell do more than the command says. On top come answers
to the questions that programs put to a terminal: there is nobody to answer them.
"""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

UNATTENDED = {
    "TERM": "dumb",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "BAT_PAGER": "cat",
    "DELTA_PAGER": "cat",
    "AWS_PAGER": "",
    "GH_PAGER": "cat",
    "PSQL_PAGER": "cat",
    "LESS": "-FRX",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "SSH_ASKPASS_REQUIRE": "never",
    "SUDO_ASKPASS": "/bin/false",
    "GCM_INTERACTIVE": "never",
    "GH_PROMPT_DISABLED": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "NPM_CONFIG_YES": "true",
    "COMPOSER_NO_INTERACTION": "1",
    "CLAUDECODE": "1",
    "HANDAXE": "1",
}
"""What every command is told, whatever the user has set."""

# What changes the meaning of a command before its first word is read.
_MEDDLING = (
    "BASH_ENV", "ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "BASH_XTRACEFD", "CDPATH",
    "GLOBIGNORE", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS4", "OLDPWD", "PWD", "SHLVL", "_",
    "COLUMNS", "LINES", "OTEL_*",
)  # fmt: skip


def command_environment(
    inherited: Mapping[str, str], hidden: Iterable[str] = (), more: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The environment of commands; `hidden` are names or patterns of what must not be seen."""
    left_out = (*_MEDDLING, *hidden)
    exact = {name for name in left_out if not _is_pattern(name)}
    patterns = [name for name in left_out if _is_pattern(name)]
    kept = {
        name: value
        for name, value in inherited.items()
        if name not in exact and not any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    return {**kept, **UNATTENDED, **(more or {})}


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")
