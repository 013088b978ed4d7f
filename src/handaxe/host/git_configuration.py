"""Does a repository choose programs for git to run: its own configuration and hooks, looked at.

Looking commands such as `git status` run without a question only where it does not. The user's own
configuration is the user's; here is only what came with the repository, and with those inside it
that git descends into. What is not known to be harmless counts as a program.
"""

import os
import re
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from handaxe.disk.places import end_of_links
from handaxe.host.git_nesting import MAX_REPOSITORIES, TooMany, linked_paths, module_directories
from handaxe.shell.tables import names

MAX_BYTES = 256 * 1024
_HOOKS = ("post-index-change",)
"""Hooks that even looking runs, because git refreshes its index on the way."""

_HEADER = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
_SECTIONS = names(
    "advice apply blame branch clone color column diff extensions feature fetch gc gui "
    "http i18n index init lfs log maintenance merge notes pack pull push rebase receive "
    "remote rerere status submodule svn-remote tag transfer uploadarchive url user "
    "versionsort commit stash checkout am lsrefs "
    # Other programs keep their notes here; git itself never reads these.
    "gitflow github gitlab hub magit forge lazygit gitbutler branchless spice git-town machete"
)
_CORE = names(
    "abbrev autocrlf bare bigfilethreshold checkstat commentchar compression "
    "deltabasecachelimit eol excludesfile filemode fscache hidedotfiles ignorecase ignorestat "
    "logallrefupdates longpaths loosecompression multipackindex packedgitlimit "
    "packedgitwindowsize precomposeunicode preloadindex protecthfs protectntfs quotepath "
    "repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone "
    "splitindex symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs "
    "whitespace commitgraph fsync fsyncobjectfiles fsyncmethod"
)
_PROGRAMS = names(
    "command textconv external driver program cmd helper uploadpack receivepack vcs process "
    "clean smudge proxy sshcommand pager editor tool guitool difftool mergetool recursive "
    "showsignature signaturefile diffmerges fsmonitor hookspath worktree packcommand "
    "proxycommand attributesfile update "
    # What is missing would be fetched while looking.
    "promisor partialclone partialclonefilter"
)
_YES_OR_NO = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1"})


class _Line(NamedTuple):
    section: str
    name: str | None
    key: str
    value: str

    def __str__(self) -> str:
        between = "" if self.name is None else f"{self.name}."
        return f"{self.section}.{between}{self.key}"


class _Doubt(Exception):
    """Why git may run something here."""


def is_git_clean(directory: str) -> bool:
    """Whether the repository around a directory names no program that git would run."""
    return not git_doubt(directory)


def git_doubt(directory: str) -> str:
    """Why git may run a program of the repository's choosing; empty if it names none."""
    for place in (Path(directory), *Path(directory).parents):
        try:
            found = _git_directory(place)
            if found is not None:
                _check_all(place, found)
                return ""
        except _Doubt as doubt:
            return str(doubt)
        except (OSError, ValueError, IndexError, struct.error) as error:
            return f"what git would run in {place} cannot be known: {error}"
    return ""


def _check_all(place: Path, git: Path) -> None:
    """A repository and all that git descends into from there; raises what is wrong."""
    waiting = [(place, git)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        place, git = waiting.pop()
        real = (end_of_links(git), end_of_links(place))
        if real in seen:
            continue
        seen.add(real)
        if len(seen) > MAX_REPOSITORIES:
            raise TooMany("too many repositories inside each other")
        _check(git, place)
        waiting += _inside(place, git)


def _inside(place: Path, git: Path) -> Iterator[tuple[Path, Path]]:
    for path in linked_paths(git):
        below = place / os.fsdecode(path)
        if (below / ".git").exists():
            found = _git_directory(below)
            if found is not None:
                yield below, found
    for module in module_directories(git):
        yield _checked_out(module, place), module


def _git_directory(place: Path) -> Path | None:
    """The repository that git would take for one here; None if it would look further up."""
    inside = place / ".git"
    if inside.is_dir():
        return inside
    if inside.is_file():
        text = inside.read_text(errors="replace")[:4096]
        if text.startswith("gitdir:"):
            return place / text.removeprefix("gitdir:").strip()
        raise ValueError("not a gitdir file")
    # A directory that looks like the inside of a repository is one, wherever it came from.
    if (place / "HEAD").exists() and (place / "objects").exists() and (place / "refs").exists():
        return place
    return None


def _check(git: Path, place: Path) -> None:
    common = git
    if (git / "commondir").is_file():
        common = git / (git / "commondir").read_text().strip()
    for config in sorted({git / "config", common / "config", git / "config.worktree"}):
        if not config.exists():
            continue
        for line in _lines(_content(config)):
            is_known = _is_harmless(line) or _is_own_worktree(line, git, place)
            if not is_known:
                raise _Doubt(f"{line} in {config} may make git run a program or reach a server")
    for name in _HOOKS:
        if (common / "hooks" / name).exists():
            raise _Doubt(f"git would run the hook {common / 'hooks' / name}")


def _is_own_worktree(line: _Line, git: Path, place: Path) -> bool:
    """Whether this only says what is so: a submodule is checked out where it was found."""
    return _is_worktree(line) and end_of_links(git / line.value) == end_of_links(place)


def _is_worktree(line: _Line) -> bool:
    return (line.section, line.name, line.key) == ("core", None, "worktree")


def _checked_out(module: Path, within: Path) -> Path:
    """Where a submodule says that it is checked out; anywhere but inside is no place for it."""
    config = module / "config"
    lines = _lines(_content(config)) if config.exists() else ()
    for line in filter(_is_worktree, lines):
        place = end_of_links(module / line.value)
        if not place.startswith(end_of_links(within).rstrip("/") + "/"):
            raise _Doubt(f"{line} in {config} leads out of {within}")
        return Path(place)
    return module


def _content(config: Path) -> bytes:
    with config.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError("too long to look at")
    return data


@lru_cache(maxsize=256)
def _lines(content: bytes) -> tuple[_Line, ...]:
    """The settings of a configuration, once per content; raises on what is hard to read."""
    text = content.decode().replace("\r\n", "\n")
    if "\\\n" in text:
        raise ValueError("a line of its configuration goes on in the next")
    found: list[_Line] = []
    section, name = "", None
    for raw in text.split("\n"):
        line = raw.strip()
        header = _HEADER.match(line)
        if header is not None:
            section, name = header[1].lower(), header[2]
            line = line[header.end() :].strip()
        if not line or line[0] in "#;":
            continue
        key = _KEY.fullmatch(line)
        if key is None or not section:
            raise ValueError("a line of its configuration cannot be read")
        found.append(_Line(section, name, key[1].lower(), (key[2] or "").strip()))
    return tuple(found)


def _is_harmless(line: _Line) -> bool:
    section, key, value = line.section.partition(".")[0], line.key, line.value
    if section == "core" and key == "fsmonitor":
        # True and false mean git's own watcher or none; anything else is a program's name.
        return value.lower() in _YES_OR_NO
    if section == "core":
        return key in _CORE and line.name is None
    if section == "alias":
        # An alias cannot stand in for git's own commands, and only those pass unasked.
        return True
    if section == "submodule" and key == "update":
        return not value.startswith("!")
    if section == "diff" and key == "submodule":
        # Anything longer makes git look into repositories that the index does not name.
        return value.lower() == "short"
    return section in _SECTIONS and key not in _PROGRAMS
