"""The credentials and histories of a user, which confined commands never read; kept as data."""

import os
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from handaxe.contract.readable_files import is_below

_BASES = {
    "XDG_CONFIG_HOME": ".config/",
    "XDG_DATA_HOME": ".local/share/",
    "XDG_STATE_HOME": ".local/state/",
    "XDG_CACHE_HOME": ".cache/",
}


class CredentialPath(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file or directory below the home directory."""

    path: str
    reason: str


class CredentialName(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A name or a pattern of names."""

    name: str
    reason: str


class Credentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All that is listed."""

    home: tuple[CredentialPath, ...]
    pattern: tuple[CredentialName, ...]
    """Names at the top of the home directory."""
    variable: tuple[CredentialName, ...]
    """Variables of the user that name such a place."""


@cache
def load_credentials() -> Credentials:
    """What `credentials.toml` lists."""
    import tomllib

    text = Path(__file__).with_name("credentials.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), Credentials)


def find_credentials(
    home: str, environment: Mapping[str, str], roots: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The places to hide, whether or not anything is there yet.

    A variable that names a file in a root hides nothing: the user put it where commands work.
    """
    listed = load_credentials()
    found = [
        path for place in listed.home for path in _expand_home_path(home, place.path, environment)
    ]
    found += _find_matching_names(home, [pattern.name for pattern in listed.pattern])
    found += (
        path
        for path in _list_credential_paths(environment, [one.name for one in listed.variable])
        if not is_below(home, path) and not any(is_below(path, root) for root in roots)
    )
    return tuple(dict.fromkeys(found))


def _expand_home_path(home: str, path: str, environment: Mapping[str, str]) -> Iterator[str]:
    yield f"{home}/{path}"
    for variable, usual in _BASES.items():
        base = environment.get(variable, "")
        if base.startswith("/") and path.startswith(usual):
            yield os.path.normpath(f"{base}/{path[len(usual) :]}")


def _find_matching_names(home: str, patterns: list[str]) -> Iterator[str]:
    try:
        names = sorted(os.listdir(home))
    except OSError:
        return
    for name in names:
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            yield f"{home}/{name}"


def _list_credential_paths(environment: Mapping[str, str], variables: list[str]) -> Iterator[str]:
    for name in variables:
        for path in environment.get(name, "").split(os.pathsep):
            if path.startswith("/") and not is_below(path, "/dev"):
                yield os.path.normpath(path)
