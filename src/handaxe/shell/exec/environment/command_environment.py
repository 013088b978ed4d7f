"""The environment of a command: the user's own, without traps for an unattended shell.

All variables of the user are passed on, so that the tools of version managers are found. The
exceptions are names that look like secrets, names that settings list, and variables that make a
shell do more than the command says. Variables that switch off terminal questions are added.
"""

from collections.abc import Iterable, Mapping

from handaxe.config.settings import Settings
from handaxe.text.secrets import ENCODED_COPIES, has_matching_pattern, is_secret_name

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
"""Variables of every command, whatever the user has set."""

# What changes the meaning of a command before its first word is read.
_MEDDLING = (
    "BASH_ENV", "ENV", "BASH_FUNC_*", "BASHOPTS", "SHELLOPTS", "BASH_XTRACEFD", "CDPATH",
    "GLOBIGNORE", "POSIXLY_CORRECT", "PROMPT_COMMAND", "PS4", "OLDPWD", "PWD", "SHLVL", "_",
    "COLUMNS", "LINES", "OTEL_*",
)  # fmt: skip


class EnvironmentFilter:
    """The variables that the environment of commands may contain."""

    def __init__(
        self,
        hidden: Iterable[str] = (),
        more: Mapping[str, str] | None = None,
        passed: Iterable[str] = (),
    ) -> None:
        """`hidden` are names or patterns of what must not be seen; `more` is set in any case.

        `passed` are names or patterns of what may be seen although it looks like a secret.
        """
        left_out = (*_MEDDLING, *ENCODED_COPIES, *hidden)
        self._exact = {name for name in left_out if not _is_pattern(name)}
        self._patterns = [name for name in left_out if _is_pattern(name)]
        self._passed = tuple(passed)
        self._set = {**UNATTENDED, **(more or {})}

    def is_visible(self, name: str) -> bool:
        """Whether commands may see a variable of the user."""
        if name in self._exact or has_matching_pattern(name, self._patterns):
            return False
        return not self._is_kept_secret(name)

    def is_removed_secret(self, name: str) -> bool:
        """Whether commands would see a variable if its name did not look like a secret."""
        return name not in self._set and self._is_kept_secret(name)

    def _is_kept_secret(self, name: str) -> bool:
        return is_secret_name(name) and not has_matching_pattern(name, self._passed)

    def environment(self, inherited: Mapping[str, str]) -> dict[str, str]:
        """The environment of commands."""
        kept = {name: value for name, value in inherited.items() if self.is_visible(name)}
        return kept | self._set


def build_environment_filter(
    settings: Settings, more: Mapping[str, str] | None = None
) -> EnvironmentFilter:
    """The filter that settings describe; `more` is what commands find too."""
    shell = settings.shell
    return EnvironmentFilter(
        shell.hidden_variables, {**settings.env, **(more or {})}, shell.pass_variables
    )


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")
