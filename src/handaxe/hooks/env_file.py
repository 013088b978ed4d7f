"""Variables that hooks leave for later commands: which of them count."""

import re
from collections.abc import Callable, Mapping

import msgspec

from handaxe.hooks.outcome import Outcome

MAX_VARIABLES = 1_000
MAX_CHARS = 100_000
"""Linux starts no program with a longer one than 128 KiB."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# A shell sets these itself, they decide what it does before the command, or the session owns them.
_NOT_THEIRS = re.compile(
    r"_|PWD|OLDPWD|SHLVL|BASH.*|ENV|SHELLOPTS|PS4|PROMPT_COMMAND|IFS|CDPATH|GLOBIGNORE"
    r"|POSIXLY_CORRECT|HANDAXE(_.*)?|CLAUDECODE|CLAUDE_(CODE_SESSION_ID|ENV_FILE|PROJECT_DIR)"
)


def add_env_variables(
    outcome: Outcome, left: Mapping[str, str | None], may_set: Callable[[str], bool]
) -> Outcome:
    """The answer with what the program left; the names that may not be set are told."""
    own = {name: value for name, value in left.items() if _NOT_THEIRS.fullmatch(name) is None}
    if not own:
        return outcome
    refused = sorted(
        name
        for name, value in own.items()
        if not (_is_valid_variable(name, value) and may_set(name))
    )
    told = f"Variables that this hook may not set were left out: {', '.join(refused)[:500]}."
    return msgspec.structs.replace(
        outcome,
        variables={name: value for name, value in own.items() if name not in refused},
        told=(*outcome.told, told) if refused else outcome.told,
    )


def take_variables(into: dict[str, str], left: Mapping[str, str | None]) -> None:
    """Keep them for later commands, as far as there is room."""
    for name, value in left.items():
        if value is None:
            into.pop(name, None)
        elif name in into or len(into) < MAX_VARIABLES:
            into[name] = value


def _is_valid_variable(name: str, value: str | None) -> bool:
    return _NAME.fullmatch(name) is not None and len(value or "") <= MAX_CHARS
