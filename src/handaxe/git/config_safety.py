"""Check whether a repository's configuration or hooks make git run programs.

Read-only commands such as `git status` need no approval only if they do not, and neither does
handaxe's own git. The user's configuration is trusted; this checks the repository and those inside
it. Unknown settings count as programs.
"""

import os
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from handaxe.disk.safe_open import resolve_links
from handaxe.git.discovery import (
    CHOOSING_VARIABLES,
    GitRepository,
    UnclearRepository,
    find_common_directory,
    find_repository,
    read_repository,
)
from handaxe.git.submodules import (
    MAX_REPOSITORIES,
    TooManyRepositories,
    find_module_directories,
    read_linked_paths,
)
from handaxe.text.escape import to_visible_text

MAX_BYTES = 256 * 1024
_MAX_TOLD = 1000
_HOOKS = ("post-index-change",)
"""Hooks that even read-only commands run, because git refreshes its index."""


def _parse_names(text: str) -> frozenset[str]:
    return frozenset(text.split())


READING_COMMANDS = _parse_names(
    "annotate bisect blame branch cat-file check-attr check-ignore check-mailmap "
    "check-ref-format cherry clean config count-objects describe diff diff-files diff-index "
    "diff-tree for-each-ref fsck grep help log ls-files ls-tree merge-base name-rev notes "
    "range-diff reflog remote rev-list rev-parse shortlog show show-branch show-ref stash "
    "status symbolic-ref tag var version whatchanged worktree"
)
"""Git commands that may need no approval; the same as in `shell.analysis`."""
_HEADER = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?")
_SECTIONS = _parse_names(
    "advice apply blame branch clone color column diff extensions feature fetch gc gui "
    "http i18n index init log maintenance merge notes pack pull push rebase receive "
    "remote rerere status submodule svn-remote tag transfer uploadarchive url user "
    "versionsort commit stash checkout am lsrefs "
    # Other programs keep their notes here; git itself never reads these.
    "gitflow github gitlab hub magit forge lazygit gitbutler branchless spice git-town machete"
)
_CORE = _parse_names(
    "abbrev autocrlf bare bigfilethreshold checkstat commentchar compression "
    "deltabasecachelimit eol excludesfile filemode fscache hidedotfiles ignorecase ignorestat "
    "logallrefupdates longpaths loosecompression multipackindex packedgitlimit "
    "packedgitwindowsize precomposeunicode preloadindex protecthfs protectntfs quotepath "
    "repositoryformatversion safecrlf sharedrepository sparsecheckout sparsecheckoutcone "
    "splitindex symlinks trustctime untrackedcache usereplacerefs warnambiguousrefs "
    "whitespace commitgraph fsync fsyncobjectfiles fsyncmethod"
)
_PROGRAMS = _parse_names(
    "command textconv external driver program cmd helper uploadpack receivepack vcs process "
    "clean smudge proxy sshcommand pager editor tool guitool difftool mergetool recursive "
    "showsignature signaturefile diffmerges fsmonitor hookspath worktree packcommand "
    "proxycommand attributesfile update "
    # What is missing would be fetched while looking.
    "promisor partialclone partialclonefilter"
)
_LFS = _parse_names(
    "access url pushurl repositoryformatversion locksverify allowincompletepush "
    "concurrenttransfers fetchinclude fetchexclude fetchrecentalways skipdownloaderrors "
    "setlockablereadonly"
)
_LFS_FILTER = {
    "clean": "git-lfs clean -- %f",
    "smudge": "git-lfs smudge -- %f",
    "process": "git-lfs filter-process",
    "required": "true",
}
"""The settings of `git lfs install --local`."""
_PLAIN_PATH = re.compile(r"[\w./-]*[\w-][\w./-]*", re.ASCII)
_YES_OR_NO = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1"})


class _Line(NamedTuple):
    section: str
    name: str | None
    key: str
    value: str

    def __str__(self) -> str:
        between = "" if self.name is None else f"{self.name}."
        return f"{self.section}.{between}{self.key}"


def explain_git_doubt(directory: str, variables: Mapping[str, str] | None = None) -> str:
    """Why git may run a program of the repository's choice; empty if it names none.

    `variables` are git's environment.
    """
    for name in CHOOSING_VARIABLES:
        if name in (variables or {}):
            return (
                f"{name} is set, so git may use another repository than the one around {directory}"
            )
    try:
        repository = find_repository(directory)
    except UnclearRepository as unclear:
        return str(unclear)
    doubt = next(find_config_risks(repository), "") if repository is not None else ""
    return doubt if len(doubt) <= _MAX_TOLD else f"{doubt[:_MAX_TOLD]}..."


def find_config_risks(
    repository: GitRepository, is_overridden: Callable[[str, str], bool] | None = None
) -> Iterator[str]:
    """The programs that a repository, and those inside it, may make git run.

    `is_overridden` tells whether the caller overrides a key of a section.
    """
    place, git = Path(repository.top), Path(repository.git)
    try:
        yield from _check_all(place, git, is_overridden)
    except UnclearRepository as unclear:
        yield str(unclear)
    except (OSError, ValueError, IndexError, struct.error) as error:
        yield f"the programs that git would run in {place} are unknown: {error}"


def has_program_settings(config: Path, *, may_work_in: Callable[[str], bool]) -> bool:
    """Whether a configuration names a program for git, or cannot be read.

    `may_work_in` tells whether a directory may be named as the work tree.
    """
    try:
        lines = _parse_config(_read_config(config))
    except (OSError, ValueError):
        return True
    for line in lines:
        if _is_worktree(line):
            is_known = may_work_in(resolve_links(config.parent / line.value))
        else:
            # An alias with this prefix is a program, which runs when a user calls it.
            is_program = line.section == "alias" and line.value.lstrip("\"' ").startswith("!")
            is_known = _is_harmless(line) and not is_program
        if not is_known:
            return True
    return False


def _check_all(
    place: Path, git: Path, is_overridden: Callable[[str, str], bool] | None
) -> Iterator[str]:
    waiting = [(place, git)]
    seen: set[tuple[str, str]] = set()
    while waiting:
        place, git = waiting.pop()
        real = (resolve_links(git), resolve_links(place))
        if real in seen:
            continue
        seen.add(real)
        if len(seen) > MAX_REPOSITORIES:
            raise TooManyRepositories("too many repositories inside each other")
        yield from _check(git, place, is_overridden)
        waiting += _find_nested(place, git)


def _find_nested(place: Path, git: Path) -> Iterator[tuple[Path, Path]]:
    for path in read_linked_paths(git):
        below = place / os.fsdecode(path)
        if os.path.lexists(below / ".git"):
            found = read_repository(str(below))
            if found is not None:
                yield below, Path(found.git)
    for module in find_module_directories(git):
        yield _find_checkout(module, place), module


def _check(
    git: Path, place: Path, is_overridden: Callable[[str, str], bool] | None
) -> Iterator[str]:
    common = Path(find_common_directory(str(git)))
    for config in sorted({git / "config", common / "config", git / "config.worktree"}):
        for line in _parse_config(_read_config(config)) if os.path.lexists(config) else ():
            is_known = _is_harmless(line) or _is_own_worktree(line, git, place)
            if is_overridden is None:
                is_known = is_known or _is_safe_for_reads(line, git, place)
            elif is_overridden(line.section, line.key):
                continue
            if not is_known:
                named = f" ({to_visible_text(line.value)})" if line.value else ""
                yield f"{line} in {config}{named} may make git run a program or reach a server"
    for name in _HOOKS if is_overridden is None else ():
        if os.path.lexists(common / "hooks" / name):
            yield f"git would run the hook {common / 'hooks' / name}"


def _is_safe_for_reads(line: _Line, git: Path, place: Path) -> bool:
    """Whether read-only commands run nothing because of it, or only a standard Git LFS."""
    if line[:3] == ("core", None, "hookspath"):
        is_plain = _PLAIN_PATH.fullmatch(line.value) is not None
        directories = (place / line.value, git / line.value)
        return is_plain and not any(
            os.path.lexists(directory / name) for directory in directories for name in _HOOKS
        )
    return line[:2] == ("filter", "lfs") and line.value == _LFS_FILTER.get(line.key)


def _is_own_worktree(line: _Line, git: Path, place: Path) -> bool:
    """Whether it only states the fact that a submodule is checked out where it was found."""
    return _is_worktree(line) and resolve_links(git / line.value) == resolve_links(place)


def _is_worktree(line: _Line) -> bool:
    return (line.section, line.name, line.key) == ("core", None, "worktree")


def _find_checkout(module: Path, within: Path) -> Path:
    """The work tree of a submodule; it must be inside."""
    config = module / "config"
    lines = _parse_config(_read_config(config)) if config.exists() else ()
    for line in filter(_is_worktree, lines):
        place = resolve_links(module / line.value)
        if not place.startswith(resolve_links(within).rstrip("/") + "/"):
            raise UnclearRepository(f"{line} in {config} leads out of {within}")
        return Path(place)
    return module


def _read_config(config: Path) -> bytes:
    with config.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError("too long to look at")
    return data


@lru_cache(maxsize=256)
def _parse_config(content: bytes) -> tuple[_Line, ...]:
    """The settings of a configuration, cached by content; raises for unusual syntax."""
    text = content.decode().replace("\r\n", "\n")
    if "\\\n" in text:
        raise ValueError("a line of its configuration continues on the next")
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
    if section == "core":
        # True and false mean git's own watcher or none; anything else is a program's name.
        is_plain = key == "fsmonitor" and value.lower() in _YES_OR_NO
        return (is_plain or key in _CORE) and line.name is None
    if section == "alias":
        # Only git's own commands run without approval; some gits let an alias replace an old one.
        return line.section == "alias" and line.name is None and key not in READING_COMMANDS
    if section == "lfs":
        # Git LFS itself is the user's; what it may start besides is the repository's choice.
        return key in _LFS
    if section == "submodule" and key == "update":
        return not value.startswith("!")
    if section == "diff" and key == "submodule":
        # Anything longer makes git look into repositories that the index does not name.
        return value.lower() == "short"
    return section in _SECTIONS and key not in _PROGRAMS
