"""Find bash and the user's own programs."""

import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.contract.faults.shell import CannotStart
from handaxe.text.paths import is_inside

_ELSEWHERE = ("/bin", "/usr/bin", "/usr/local/bin")


@lru_cache(maxsize=64)
def find_bash(path: str) -> str:
    """The first bash in `path`, or in the usual directories."""
    if (
        program := _find_in_directories("bash", (*path.split(os.pathsep), *_ELSEWHERE))
    ) is not None:
        return program
    raise SetupError("There is no bash on this machine. Install it to run commands.")


def _find_in_directories(name: str, directories: Sequence[str]) -> str | None:
    for directory in directories:
        program = f"{directory}/{name}"
        # A relative entry would mean something else in every project.
        if directory.startswith("/") and os.access(program, os.X_OK):
            return program
    return None


class BashConfig(msgspec.Struct, frozen=True):
    """Which bash runs commands, through which prefix, and with which definitions."""

    program: str | None = None
    """Its path; if unset or missing, the first bash on PATH."""
    prefix: tuple[str, ...] = ()
    """A program with its first arguments that runs each command line."""
    with_snapshot: bool = False
    """Whether commands have the functions and aliases of the user's shell."""

    def found(self, path: str) -> str:
        """The bash to start."""
        wanted = Path(self.program or "")
        if wanted.is_absolute() and wanted.name == "bash" and os.access(wanted, os.X_OK):
            return str(wanted)
        return find_bash(path)

    def resolve_prefix(self, path: str) -> tuple[str, ...]:
        """The prefix with the absolute path of its program."""
        name, *first = self.prefix
        place = _find_in_directories(name, path.split(os.pathsep)) if "/" not in name else name
        if place is None or not place.startswith("/") or not os.access(place, os.X_OK):
            reason = f"{name!r} from the setting `shell.prefix` does not exist"
            raise CannotStart(reason, "Ask the user to correct the setting.")
        return (place, *first)


def list_project_programs(path: str, cwd: str, roots: tuple[str, ...]) -> frozenset[str]:
    """Names under which `path` finds a program in one of the roots."""
    found: set[str] = set()
    elsewhere: list[str] = []
    for place, is_ours in _list_search_directories(path, cwd, roots):
        if is_ours:
            inside = _list_programs(place, _read_mtime(place), roots)
            found |= {
                name for name in inside if not any(_has_program(other, name) for other in elsewhere)
            }
        else:
            elsewhere.append(place)
    return frozenset(found)


@lru_cache(maxsize=256)
def _list_search_directories(
    path: str, cwd: str, roots: tuple[str, ...]
) -> tuple[tuple[str, bool], ...]:
    """The searched directories, and whether each is in the roots; empty if none is."""
    entries = path.split(os.pathsep)
    places = [entry if entry.startswith("/") else f"{cwd}/{entry}" for entry in entries]
    reals = map(os.path.realpath, places)
    ours = [any(is_inside(real, root) for root in roots) for real in reals]
    return tuple(zip(places, ours, strict=True)) if any(ours) else ()


@lru_cache(maxsize=64)
def _list_programs(place: str, _changed_at: int, roots: tuple[str, ...]) -> frozenset[str]:
    """The programs in a directory, without links to the same program elsewhere."""
    try:
        names = os.listdir(place)
    except OSError:
        return frozenset()
    return frozenset(
        name for name in names if not _is_same_elsewhere(name, f"{place}/{name}", roots)
    )


def _is_same_elsewhere(name: str, path: str, roots: tuple[str, ...]) -> bool:
    real = os.path.realpath(path)
    return Path(real).name.startswith(name) and not any(is_inside(real, root) for root in roots)


def _read_mtime(place: str) -> int:
    try:
        return os.stat(place).st_mtime_ns
    except OSError:
        return 0


def _has_program(place: str, name: str) -> bool:
    return os.access(f"{place}/{name}", os.X_OK)


_PROGRAM = r"[A-Za-z0-9_./+-]+"
_WORD = r"(?:[A-Za-z0-9_./+@%:,=^~*?-]|'[^'\n]*'|\"[^\"$`\\!\n]*\")+"
_PLAIN = re.compile(rf" *({_PROGRAM})(?: +{_WORD})* *\Z")
# What bash does itself, and the words of its grammar.
_OF_THE_SHELL = frozenset(
    {
        ".", "alias", "bg", "bind", "break", "builtin", "caller", "case", "cd", "command",
        "compgen", "complete", "compopt", "continue", "coproc", "declare", "dirs", "disown",
        "do", "done", "echo", "elif", "else", "enable", "esac", "eval", "exec", "exit",
        "export", "false", "fc", "fg", "fi", "for", "function", "getopts", "hash", "help",
        "history", "if", "in", "jobs", "kill", "let", "local", "logout", "mapfile", "popd",
        "printf", "pushd", "pwd", "read", "readarray", "readonly", "return", "select",
        "set", "shift", "shopt", "source", "suspend", "test", "then", "time", "times",
        "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset", "until",
        "wait", "while",
    }
)  # fmt: skip


def is_plain_program(text: str) -> bool:
    """Whether `text` certainly runs one program and nothing else."""
    found = _PLAIN.match(text)
    return found is not None and found[1] not in _OF_THE_SHELL


_GAINING = (
    "at", "batch", "bwrap", "buildah", "chsh", "chfn", "crontab", "doas", "fusermount",
    "fusermount3", "gpasswd", "mount", "newgidmap", "newgrp", "newuidmap", "passwd", "ping",
    "pkexec", "podman", "run0", "runuser", "sg", "singularity", "apptainer", "su", "sudo",
    "sudoedit", "umount",
)  # fmt: skip
_NAMED = re.compile(rf"(?<![\w.-])(?:{'|'.join(_GAINING)})(?![\w.-])")


def can_be_restricted(command: str) -> bool:
    """Whether no word of a command names a program that gains privileges."""
    return _NAMED.search(command) is None
