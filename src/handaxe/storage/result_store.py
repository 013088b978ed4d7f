"""Oversized results of one session, kept whole in files that Read and Grep accept."""

import contextlib
import itertools
import os
import re
import time
from pathlib import Path

from handaxe.contract.ports.result_store import ResultStore
from handaxe.storage.home import make_private_directory
from handaxe.text.redact import Redactor

DAY_S = 24 * 60 * 60


class DiskResultStore(ResultStore):
    """One directory per session, one file per result."""

    def __init__(
        self, directory: Path, *, retention_days: int, redactor: Redactor | None = None
    ) -> None:
        """`redactor` takes secrets out of what is stored."""
        self.directory = directory
        self._redactor = Redactor() if redactor is None else redactor
        self._retention_days = retention_days

    def keep(self, call_id: str, text: str) -> str:
        """Store the whole text and return the path to read it from."""
        # A file with a NUL is binary to whoever reads it: spelled out, as halves of characters are.
        text = self._redactor.redact(text)
        return self._keep(call_id, text.replace("\0", "\\x00").encode(), ".txt")

    def keep_bytes(self, call_id: str, content: bytes, suffix: str) -> str:
        """Store any content under a name with this suffix and return the path of the file."""
        return self._keep(call_id, self._redactor.redact_bytes(content), suffix)

    def _keep(self, call_id: str, content: bytes, suffix: str) -> str:
        name = re.sub(r"[^A-Za-z0-9_-]", "_", call_id)[:100] or "result"
        make_private_directory(self.directory)
        path = self._create(name, suffix, content)
        self._sweep_once_a_day()
        return str(path)

    def _create(self, name: str, suffix: str, content: bytes) -> Path:
        """Write a file of its own; not synced, since what it holds can be had again."""
        for attempt in itertools.count(1):
            path = self.directory / (name + ("" if attempt == 1 else f"-{attempt}") + suffix)
            try:
                fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            try:
                with os.fdopen(fd, "wb") as file:
                    file.write(content)
            except OSError:
                # A part of a result would pass for the whole.
                path.unlink(missing_ok=True)
                raise
            return path
        raise AssertionError("counting never ends")

    def _sweep_once_a_day(self) -> None:
        """Tidy up; another session may be doing the same, and none of it matters to the result."""
        sessions = self.directory.parent.parent
        if sessions.name == "agents":
            sessions = sessions.parent.parent
        stamp = sessions / ".swept"
        with contextlib.suppress(OSError):
            if stamp.exists() and stamp.stat().st_mtime > time.time() - DAY_S:
                return
            stamp.touch(mode=0o600)
            drop_old_results(sessions, self._retention_days)


def drop_old_results(sessions: Path, retention_days: int) -> int:
    """Remove stored results that were unused for longer than the retention; returns how many."""
    import shutil

    old = find_old_results(sessions, retention_days)
    for results in old:
        shutil.rmtree(results, ignore_errors=True)
    return len(old)


def find_old_results(sessions: Path, retention_days: int) -> list[Path]:
    """The directories of results, of agents as well, that were unused for this long."""
    oldest = time.time() - retention_days * DAY_S
    found = itertools.chain(sessions.glob("*/results"), sessions.glob("*/agents/*/results"))
    return [results for results in found if _read_used_at(results) < oldest]


def list_file_sizes(results: Path) -> list[int]:
    """The sizes of the files in a directory of results; files that disappear are not counted."""
    sizes: list[int] = []
    with contextlib.suppress(OSError):
        for name in os.listdir(results):
            with contextlib.suppress(OSError):
                sizes.append(os.lstat(results / name).st_size)
    return sizes


def _read_used_at(results: Path) -> float:
    """When results were used last; now, if they are gone."""
    try:
        return results.stat().st_mtime
    except OSError:
        return time.time()
