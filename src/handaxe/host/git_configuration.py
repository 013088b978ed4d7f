"""Does a repository choose programs for git to run: its own configuration and hooks, looked at.

Looking commands such as `git status` run without a question only where it does not. The user's own
configuration is the user's; here is only what came with the repository. What is not known to be
harmless counts as a program.
"""

import re
from functools import lru_cache
from pathlib import Path

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
    "versionsort commit stash checkout am lsrefs"
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
    "proxycommand attributesfile update"
)
_YES_OR_NO = frozenset({"", "true", "false", "yes", "no", "on", "off", "0", "1"})


def is_git_clean(directory: str) -> bool:
    """Whether the repository around a directory names no program that git would run."""
    for place in (Path(directory), *Path(directory).parents):
        try:
            found = _git_directory(place)
        except (OSError, ValueError):
            return False
        if found is not None:
            return _is_clean(found)
    return True


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


def _is_clean(git: Path) -> bool:
    try:
        common = git
        if (git / "commondir").is_file():
            common = git / (git / "commondir").read_text().strip()
        for config in {git / "config", common / "config", git / "config.worktree"}:
            if config.exists() and not _names_no_program(_content(config)):
                return False
        return not any((common / "hooks" / name).exists() for name in _HOOKS)
    except (OSError, ValueError):
        return False


def _content(config: Path) -> bytes:
    with config.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError("too long to look at")
    return data


@lru_cache(maxsize=256)
def _names_no_program(content: bytes) -> bool:
    """Whether every line of a configuration is known to be harmless; once per content."""
    try:
        text = content.decode().replace("\r\n", "\n")
    except UnicodeDecodeError:
        return False
    if "\\\n" in text:
        # Lines that go on mean one thing in a value and another in a comment.
        return False
    section, has_name = "", False
    for raw in text.split("\n"):
        line = raw.strip()
        header = _HEADER.match(line)
        if header is not None:
            section, has_name = header[1].lower(), header[2] is not None
            line = line[header.end() :].strip()
        if not line or line[0] in "#;":
            continue
        key = _KEY.fullmatch(line)
        if key is None or not section:
            return False
        if not _is_harmless(section, key[1].lower(), (key[2] or "").strip(), has_name=has_name):
            return False
    return True


def _is_harmless(section: str, key: str, value: str, *, has_name: bool) -> bool:
    section = section.partition(".")[0]
    if section == "core" and key == "fsmonitor":
        # True and false mean git's own watcher or none; anything else is a program's name.
        return value.lower() in _YES_OR_NO
    if section == "core":
        return key in _CORE and not has_name
    if section == "alias":
        # An alias cannot stand in for git's own commands, and only those pass unasked.
        return True
    if section == "submodule" and key == "update":
        return not value.startswith("!")
    return section in _SECTIONS and key not in _PROGRAMS
