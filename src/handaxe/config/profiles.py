"""The settings that arguments of a session stand for: its variables, and a profile by name.

A profile is a set of options that belong together. What it promises is checked against the
settings in force, so that no argument and no file breaks it in silence.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, cast

import msgspec

from handaxe.config.project import Configuration, Given, read_given
from handaxe.config.source import SettingsFragment, read_data
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.session import BadEnvironment, ProfileNotMet
from handaxe.text.paths import is_inside

ProfileName = Literal["many-users"]
MANY_USERS: Final = "many-users"

_MIB = 1 << 20
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_OPTIONS: dict[str, Any] = {
    "sandbox": {
        "enabled": True,
        "failIfUnavailable": True,
        "allowUnsandboxedCommands": False,
    },
    "shell": {
        # Of the host's variables commands see none; the session names what they see.
        "hidden_variables": ["*"],
        "activation": "off",
        "max_background": 8,
        "max_background_of_user": 16,
        "max_output_bytes": 16 * _MIB,
        "runaway_bytes": 256 * _MIB,
        "max_session_bytes": 256 * _MIB,
        "max_kept_bytes": 512 * _MIB,
    },
    "undo": {"max_bytes": 512 * _MIB, "shell_max_bytes": 256 * _MIB},
    "agents": {"max_running": 4, "max_depth": 1},
    "max_parallel_calls": 4,
}


def join_given(
    given: Given, env: Mapping[str, str] | None, profile: ProfileName | None, root: str
) -> SettingsFragment:
    """The settings of a session's arguments, the profile lowest and its variables highest."""
    fragment = read_given(given, where="the session's arguments")
    parts = [fragment]
    if profile is not None:
        if profile != MANY_USERS:
            raise SetupError(f"There is no profile {profile!r}; there is {MANY_USERS!r}.")
        variables = {"PATH": _PATH, "HOME": root, "LANG": "C.UTF-8"}
        parts.insert(0, read_data({**_OPTIONS, "env": variables}))
    if env is not None:
        parts.append(read_data({"env": validate_variables(env)}))
    entries = tuple(entry for part in parts for entry in part.entries)
    return msgspec.structs.replace(fragment, entries=entries)


def validate_variables(env: Mapping[str, str]) -> dict[str, str]:
    """The variables, if a process can have them.

    Raises:
        BadEnvironment: a name or value is invalid, or not a text.
    """
    if not isinstance(cast("object", env), Mapping):
        raise BadEnvironment(problem=f"a dict is wanted, not {type(env).__name__}")
    for name, value in cast("Mapping[object, object]", env).items():
        if not isinstance(name, str) or not name or "=" in name or "\0" in name:
            raise BadEnvironment(problem=f"{name!r} is not the name of a variable")
        if not isinstance(value, str):
            # Its value may be a secret, so only its type is told.
            raise BadEnvironment(problem=f"{name} is {type(value).__name__}, not a text")
        if "\0" in value:
            raise BadEnvironment(problem=f"{name} holds a zero byte")
        if not _is_encodable(name) or not _is_encodable(value):
            raise BadEnvironment(problem=f"{name!r} or its value is not Unicode text")
    return dict(env)


def check_profile(profile: ProfileName, configuration: Configuration, home: Path | None) -> None:
    """Make sure that the profile holds with everything that was given.

    Raises:
        ProfileNotMet: it does not, and why.
    """
    root, sources = configuration.root, configuration.sources
    problems: list[str] = []
    if home is None:
        problems.append("`home` is not given; each user needs a data directory of their own")
    else:
        place = os.path.realpath(home)
        if is_inside(place, root) or is_inside(root, place):
            problems.append(f"`home` ({place}) and `root` ({root}) hold each other")
    if "user" in sources:
        problems.append("`setting_sources` names `user`: those settings belong to the host")
    sandbox = configuration.settings.sandbox
    held = {
        "sandbox.enabled": sandbox.enabled,
        "sandbox.failIfUnavailable": sandbox.fail_if_unavailable,
        "sandbox.autoAllowBashIfSandboxed": sandbox.auto_allow_bash_if_sandboxed,
    }
    problems += [f"`{name}` is off" for name, holds in held.items() if not holds]
    opened = {
        "sandbox.allowUnsandboxedCommands": sandbox.allow_unsandboxed_commands,
        "sandbox.excludedCommands": sandbox.excluded_commands,
        "sandbox.filesystem.disabled": sandbox.filesystem.disabled,
    }
    problems += [f"`{name}` lets commands out" for name, is_set in opened.items() if is_set]
    if problems:
        raise ProfileNotMet(profile, problems)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
