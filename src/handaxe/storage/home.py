"""The data directory: one per user, moved by `HANDAXE_HOME`; nothing of it lies in a project."""

import contextlib
import os
import re
import stat
import sys
from pathlib import Path

from handaxe.contract.faults import SetupError
from handaxe.disk import private
from handaxe.disk.durability import sync_names
from handaxe.disk.private import find_shared_access

_not_kept: set[Path] = set()
"""Directories made by this process whose names were not synced yet."""
_NO_HOME = "/dev/null"
"""The home directory of a user without one: it can never contain anything."""
_SESSION_ID = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


def find_data_home(given: str | os.PathLike[str] | None = None) -> Path:
    """Where handaxe keeps its own files.

    If no place is configured and the usual one is not writable, as in containers with arbitrary
    users, it is a private directory among the temporary files.

    Raises:
        SetupError: it is not usable, or another user could have changed its content. Then its
            trust and undo records cannot be relied on.
    """
    home = _find_home(given)
    if given is None and not (os.environ.get("HANDAXE_HOME") or _is_writable(home)):
        home = _make_temporary_home()
    problem: str | None = None
    with contextlib.suppress(OSError):
        # Where nothing can be read, nothing is believed.
        problem = find_shared_access(home) if home.is_dir() else None
    if problem is not None:
        raise SetupError(
            f"The data directory cannot be used: {problem}. Take it into your own hands "
            f"(`chown`, `chmod 700`) if you know what is in it, or name another one with "
            "HANDAXE_HOME."
        )
    return home


def explain_temporary_home(home: Path) -> str | None:
    """A notice about a data directory among temporary files, or None."""
    if os.environ.get("HANDAXE_HOME") or home != _name_temporary_home():
        return None
    return (
        f"The usual data directory {_find_home()} cannot be written to, so {home} is used, which "
        "may be removed at any time with all sessions, undo and trust. Set HANDAXE_HOME to a "
        "directory that stays."
    )


def _is_writable(home: Path) -> bool:
    """Whether the directory can be written to, or made if it is missing."""
    for place in (home, *home.parents):
        try:
            is_directory = stat.S_ISDIR(place.stat().st_mode)
        except FileNotFoundError:
            continue
        except OSError:
            return False
        return is_directory and os.access(place, os.W_OK | os.X_OK)
    return False


def _name_temporary_home() -> Path:
    """The same for all programs of a user; never below the current directory by chance."""
    places = (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp")  # noqa: S108 - looked at below
    usable = (at for at in places if at.startswith("/") and os.access(at, os.W_OK | os.X_OK))
    return Path(next(usable, "/tmp"), f"handaxe-{os.geteuid()}")  # noqa: S108


def _make_temporary_home() -> Path:
    """Make the directory where it is missing; others may have been there before us.

    Raises:
        SetupError: it cannot be made, or it is not ours alone.
    """
    home = _name_temporary_home()
    problem = f"{home} is not a private directory of yours"
    try:
        with contextlib.suppress(FileExistsError):
            home.mkdir(mode=0o700)
        found = home.lstat()
        is_ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()
        if is_ours and not stat.S_IMODE(found.st_mode) & 0o077:
            return home
    except OSError as error:
        problem = f"{home} cannot be made ({error.strerror})"
    raise SetupError(
        f"There is no place for data: {_find_home()} cannot be written to, and {problem}. "
        "Set HANDAXE_HOME to a directory of yours."
    )


def get_user_home() -> str:
    """The user's home directory; one that is not there for a user without any."""
    home = os.path.expanduser("~")  # noqa: PTH111 - `Path.home` fails where nobody knows it
    return home if home.startswith("/") else _NO_HOME


def _find_home(given: str | os.PathLike[str] | None = None) -> Path:
    if given is not None and not str(given):
        # Whoever names a place does not mean the usual one: it may hold the data of others.
        raise SetupError("The data directory cannot be an empty text. Name one, or leave it out.")
    chosen = (os.environ.get("HANDAXE_HOME") or None) if given is None else given
    if chosen is not None:
        try:
            path = Path(chosen).expanduser().absolute()
            if b"\0" in os.fsencode(path):
                raise ValueError("embedded null byte")  # noqa: TRY301 - as any system call says it
            return path  # noqa: TRY300
        except (TypeError, ValueError, RuntimeError) as error:
            raise SetupError(f"{chosen!r} cannot be the data directory: {error}.") from None
    if sys.platform == "darwin":
        return Path(get_user_home(), "Library", "Application Support", "handaxe")
    state = os.environ.get("XDG_STATE_HOME")
    return Path(state or Path(get_user_home(), ".local", "state"), "handaxe").absolute()


def list_own_paths(home: Path) -> tuple[str, ...]:
    """Where data and settings of handaxe and its ecosystem lie, as spelled and after links.

    No root holds them, whatever directory it is: permission, searches, the sandbox and undo all
    ask here. `home` is the data directory in use, perhaps one that ends with the run.
    """
    user = get_user_home()
    configured = os.environ.get("XDG_CONFIG_HOME") or os.path.join(user, ".config")  # noqa: PTH118
    usual = (os.path.join(user, name) for name in (SHARED, f"{SHARED}.json", OWN))  # noqa: PTH118
    spelled = (
        str(home),
        str(_find_home()),
        *get_user_directories(),
        get_shared_servers_file(),
        *usual,
        f"{configured}/handaxe",
        *MANAGED_DIRECTORIES,
    )
    absolute = [os.path.abspath(path) for path in spelled]
    return tuple(dict.fromkeys((*absolute, *map(os.path.realpath, absolute))))


def get_sessions_directory(home: Path) -> Path:
    """Where all sessions of a data directory lie."""
    return home / "sessions"


def get_session_directory(home: Path, session_id: str) -> Path:
    """Where one session keeps its log and its results."""
    return get_sessions_directory(home) / validate_session_id(session_id)


def get_tasks_directory(home: Path, name: str) -> Path:
    """Where a list of tasks lies: by the id of its session, or by the name that several share."""
    return home / "tasks" / name


def is_session_id(text: str) -> bool:
    """Whether it can be a directory name of its own."""
    return re.fullmatch(_SESSION_ID, text) is not None


def validate_session_id(session_id: str) -> str:
    """The id, if it can be a directory name of its own."""
    # What the type promises a program may not keep.
    if not is_session_id(str(session_id)) or session_id != str(session_id):
        from handaxe.contract.faults.session import BadSessionId

        raise BadSessionId(session_id)
    return session_id


def generate_session_id() -> str:
    """A fresh id."""
    return os.urandom(16).hex()


def make_private_directory(directory: Path) -> None:
    """Create a directory and its parents, readable by the owner only.

    They survive a power failure when the caller calls `sync_directory_names`, which takes its time.
    """
    if not directory.exists():
        _not_kept.update(private.make_private(directory))


def sync_directory_names(directory: Path) -> None:
    """Make a directory and its parents survive a power failure."""
    for place in (*[above for above in directory.parents if above in _not_kept], directory):
        # Of a directory that may be written and not read, nobody can say so much.
        with contextlib.suppress(PermissionError):
            sync_names(place.parent)
        _not_kept.discard(place)


def make_durable_directory(directory: Path) -> None:
    """Create a directory and its parents so that they survive a power failure."""
    for place in private.make_private(directory):
        sync_directory_names(place)


OWN = ".handaxe"


SHARED = ".claude"


MANAGED_DIRECTORIES: tuple[str, ...] = (
    ("/Library/Application Support/ClaudeCode", "/Library/Application Support/handaxe")
    if sys.platform == "darwin"
    else ("/etc/claude-code", "/etc/handaxe")
)


def get_user_directories() -> tuple[str, str]:
    """The ecosystem's and handaxe's own directory in the user's home."""
    shared = os.environ.get("CLAUDE_CONFIG_DIR") or os.path.join(get_user_home(), SHARED)  # noqa: PTH118
    own = os.environ.get("HANDAXE_CONFIG_HOME") or os.path.join(get_user_home(), OWN)  # noqa: PTH118
    return _make_absolute(shared), _make_absolute(own)


def get_shared_servers_file() -> str:
    """The ecosystem's file of the user's own MCP servers, for all projects and for single ones."""
    home = os.environ.get("CLAUDE_CONFIG_DIR") or get_user_home()
    return f"{home}/.claude.json"


def _make_absolute(path: str) -> str:
    return os.path.abspath(os.path.expanduser(path))  # noqa: PTH111 - cheaper than a Path
