"""The directories a session works in, after links; where they come from is not decided here."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import cast

from handaxe.contract.faults import SetupError
from handaxe.storage.home import find_data_home
from handaxe.text.paths import is_inside


def resolve_working_directories(
    root: str | os.PathLike[str],
    more: Sequence[str | os.PathLike[str]],
    data: str | os.PathLike[str] | None = None,
) -> tuple[tuple[str, ...], dict[str, str]]:
    """The real working directories, and the names they were given by where those differ.

    Raises:
        SetupError: one is not a directory, or lies in the data directory, `data` or the user's own.
    """
    own = os.path.realpath(find_data_home(data))
    roots: list[str] = []
    spellings: dict[str, str] = {}
    for given in (root, *more):
        spelled, real = _resolve_directory(given)
        if not Path(real).is_dir():
            raise SetupError(f"{spelled} is not a directory. Name the project's directory.")
        if is_inside(real, own):
            raise SetupError(
                f"{spelled} lies in the data directory of handaxe, where no session works. "
                "Name another directory, or move the data with HANDAXE_HOME."
            )
        if real != spelled:
            spellings[spelled] = real
        if real not in roots:
            roots.append(real)
    return tuple(roots), spellings


def resolve_project(given: str, *, may_be_gone: bool = False) -> str:
    """The real path of a named directory of a project."""
    spelled, real = _resolve_directory(given)
    if not Path(real).is_dir() and not (may_be_gone and not Path(real).exists()):
        raise SetupError(f"{spelled} is not a directory. Name the project's directory.")
    return real


def _resolve_directory(given: str | os.PathLike[str]) -> tuple[str, str]:
    """A directory's absolute path as it was given, and after links."""
    if given == "":
        # As a variable gives it that is not set; nobody means the current directory by it.
        raise SetupError("A directory is named by an empty text. Name it, or leave it out.")
    try:
        spelled = make_absolute(given)
        real = os.path.realpath(spelled)
        Path(real).is_dir()
    except (TypeError, ValueError, RuntimeError, OSError) as error:
        if isinstance(error, FileNotFoundError) and error.filename is None:
            raise SetupError(
                "The current directory no longer exists. Change to another one."
            ) from None
        raise SetupError(f"{given!r} cannot be a directory: {error}.") from None
    return spelled, real


def list_directories(given: object) -> tuple[str | os.PathLike[str], ...]:
    """The directories that a program named; one alone needs no list around it."""
    if isinstance(given, str | os.PathLike):
        return (cast("str | os.PathLike[str]", given),)
    if isinstance(given, Iterable) and not isinstance(given, bytes | Mapping):
        return tuple(cast("Iterable[str | os.PathLike[str]]", given))
    raise SetupError(f"`add_dirs` takes directories, not {given!r}.")


def _parse_file_url(given: str | os.PathLike[str]) -> str | None:
    """The path of a directory that is named by its `file:` address, as in calls."""
    if not isinstance(given, str) or not given.startswith("file:/"):
        return None
    from handaxe.text.urls import parse_file_uri

    return parse_file_uri(given)


def make_absolute(given: str | os.PathLike[str]) -> str:
    """The absolute path, links and all; the process's own directory may be gone if it is one."""
    path = Path(_parse_file_url(given) or given).expanduser()
    return os.path.normpath(path if path.is_absolute() else Path.cwd() / path)
