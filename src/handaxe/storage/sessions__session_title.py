"""The name of a session, by which people find it again."""

from pathlib import Path

from handaxe.storage.sessions import MAX_NAME_CHARS, name_session, read_session_name


class SessionTitle:
    """Reads and writes it."""

    def __init__(self, home: Path, session_id: str) -> None:
        self._home = home
        self._session_id = session_id

    def read(self) -> str | None:
        """The name, if somebody gave one."""
        return read_session_name(self._home, self._session_id)

    def write(self, text: str) -> None:
        """Name it as a hook wants it: in one line, not too long; nothing is no name."""
        line = "".join(char if char.isprintable() else " " for char in text)
        name = " ".join(line.split())[:MAX_NAME_CHARS].strip()
        if name:
            name_session(self._home, self._session_id, name)
