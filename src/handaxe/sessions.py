"""The sessions on disk: `handaxe.sessions(root)` lists those of a project; functions change them.

Everything here reads and writes the data directory and blocks while it does. `home` is the data
directory, by default the user's. With `root` a session of another project is refused.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import cast

from handaxe.app.rewind import SavedMessage, fork_session_at, rewind_session
from handaxe.app.rewind import list_messages as _list_messages
from handaxe.config.working_directories import make_absolute
from handaxe.contract.events import Event
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.session import (
    NoSuchMessage,
    SessionBusy,
    SessionElsewhere,
    SessionNotFound,
)
from handaxe.storage.home import find_data_home, validate_session_id
from handaxe.storage.sessions import (
    SessionSummary,
    delete_session,
    find_session_directory,
    name_session,
)
from handaxe.storage.sessions import list_sessions as _list_sessions
from handaxe.storage.sessions import read_events as _read_events
from handaxe.undo.journal_files.journal_scan import find_damage

PathLike = str | os.PathLike[str]

__all__ = [
    "NoSuchMessage",
    "SavedMessage",
    "SessionBusy",
    "SessionElsewhere",
    "SessionNotFound",
    "SessionSummary",
    "delete",
    "fork",
    "list_messages",
    "list_sessions",
    "read_events",
    "rename",
    "rewind",
]


def list_sessions(
    root: PathLike | None = ".", *, home: PathLike | None = None
) -> list[SessionSummary]:
    """The sessions of a project, the last used first; with None those of all projects.

    One that cannot be read is listed with its `damage`.
    """
    place = None if root is None else _resolve_root(root)
    return _list_sessions(find_data_home(home), find_damage, root=place)


def list_messages(
    session_id: str, *, root: PathLike | None = None, home: PathLike | None = None
) -> list[SavedMessage]:
    """The messages of a session, each with the id that `fork` and `rewind` use."""
    return _list_messages(_open(session_id, root, home), session_id)


def read_events(
    session_id: str, *, root: PathLike | None = None, home: PathLike | None = None
) -> Iterator[Event]:
    """Every event of a session's log in order; what cannot be read is left out."""
    return _read_events(_open(session_id, root, home), session_id)


def fork(
    session_id: str,
    *,
    at: str | None = None,
    new_id: str | None = None,
    root: PathLike | None = None,
    home: PathLike | None = None,
) -> str:
    """Copy a session's past, whole or up to the message `at`, and return the id of the copy.

    What the original changed stays its own to undo.
    """
    place = _open(session_id, root, home)
    chosen = None if new_id is None else validate_session_id(new_id)
    return fork_session_at(place, session_id, chosen, message_id=at)


def rewind(
    session_id: str, to: str, *, root: PathLike | None = None, home: PathLike | None = None
) -> None:
    """Drop the messages after the message `to`. Files stay as they are."""
    rewind_session(_open(session_id, root, home), session_id, to)


def rename(
    session_id: str, title: str, *, root: PathLike | None = None, home: PathLike | None = None
) -> None:
    """Give a session a title, by which it is found too."""
    name_session(_open(session_id, root, home), session_id, title)


def delete(session_id: str, *, root: PathLike | None = None, home: PathLike | None = None) -> None:
    """Remove a session with its results; what it changed stays, and cannot be undone any more."""
    delete_session(_open(session_id, root, home), session_id)


def _open(session_id: str, root: PathLike | None, home: PathLike | None) -> Path:
    """The data directory, once it is sure that it has the session."""
    place = find_data_home(home)
    find_session_directory(place, session_id, root=None if root is None else _resolve_root(root))
    return place


def _resolve_root(root: PathLike) -> str:
    if not isinstance(cast("object", root), str | os.PathLike) or not os.fspath(root):
        raise SetupError(f"`root` is the path of a project, not {root!r}.")
    return os.path.realpath(make_absolute(root))


class SessionsModule(ModuleType):
    """The module itself, which lists sessions when it is called."""

    delete = staticmethod(delete)
    fork = staticmethod(fork)
    list_messages = staticmethod(list_messages)
    list_sessions = staticmethod(list_sessions)
    read_events = staticmethod(read_events)
    rename = staticmethod(rename)
    rewind = staticmethod(rewind)

    def __call__(
        self, root: PathLike | None = ".", *, home: PathLike | None = None
    ) -> list[SessionSummary]:
        """The sessions of a project, the last used first; with None those of all projects."""
        return list_sessions(root, home=home)


sys.modules[__name__].__class__ = SessionsModule
