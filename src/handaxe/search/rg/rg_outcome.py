"""The result of one run of ripgrep, with what its messages say."""

import re
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from handaxe.contract.ports.search import BadQuery
from handaxe.search.rg_output import strip_dot_slash

MAX_COMPLAINT_BYTES = 1 << 14
_PASSED_BY = re.compile(rb": ignoring (.*): (?:(found binary data at offset)|\d+ bytes\Z)")
_IGNORED = re.compile(rb": ignoring (.*?): Ignore\(IgnoreMatch\(Gitignore\(")
_LINK = re.compile(rb": ignoring (.*): failed to pass haystack filter: .*? is_symlink: true")

Ending = Literal["finished", "satisfied", "enough", "out_of_time", "talked_too_much"]
"""After "enough" and "out_of_time" a run can be resumed."""


class RipgrepOutcome(msgspec.Struct):
    """The result of one run of ripgrep."""

    is_hidden: Callable[[bytes], bool] | None = None
    """Says which paths are not even counted."""
    ending: Ending = "satisfied"
    exit_code: int = 0
    binary: int = 0
    ignored: list[bytes] = []
    """Entries that an ignore file names."""
    links: list[bytes] = []
    """Links that do not lead to directories."""
    is_clear: bool = True
    """Whether every message was understood."""
    said_bytes: int = 0
    too_large: int = 0
    too_large_match: bytes | None = None
    """A file with a match that does not fit into memory."""
    unreadable: int = 0
    duration_s: float = 0.0
    complaints: list[bytes] = []

    def format_complaints(self) -> str:
        """Its messages that are not about skipped files."""
        return b"\n".join(self.complaints).decode("utf-8", "replace").removeprefix("rg: ")

    def refuse_bad_query(self) -> None:
        """Raise `BadQuery` if ripgrep could not read the query; unreadable files do not matter."""
        said = self.format_complaints()
        if "error parsing glob" in said:
            raise BadQuery("glob", said)
        if said.startswith("unrecognized file type"):
            raise BadQuery("type", said)
        if "(os error " not in said and said:
            raise BadQuery("pattern", said)

    @property
    def lacked_threads(self) -> bool:
        """Whether the machine refused another thread or process."""
        said = b"\n".join(self.complaints)
        return self._failed and (
            b"os error 11" in said or b"WouldBlock" in said or b"failed to spawn" in said
        )

    @property
    def lacked_memory(self) -> bool:
        """Whether the run needed more memory than it may use."""
        said = b"\n".join(self.complaints)
        return self._failed and (
            b"memory allocation" in said or b"os error 12" in said or b"OutOfMemory" in said
        )

    @property
    def crashed(self) -> bool:
        """Whether the run failed for another reason than the query."""
        return self._failed and self.exit_code != 2

    @property
    def _failed(self) -> bool:
        return self.ending == "finished" and self.exit_code not in {0, 1}

    def hear(self, said: Iterable[bytes]) -> None:
        """Read the lines of standard error."""
        for line in said:
            self._note(line.rstrip(b"\n"))

    def note_binary(self, paths: Iterable[bytes]) -> None:
        """Count binary files that standard output named."""
        self.binary += sum(self._can_count(path) for path in paths)

    def _note(self, line: bytes) -> None:
        if not line.startswith(b"rg: DEBUG|"):
            path = line.removeprefix(b"rg: ").rpartition(b": ")[0]
            self.unreadable += b"(os error " in line and self._can_count(path)
            # The message continues a name with a line break.
            self.is_clear = self.is_clear and line.startswith(b"rg: ")
            if line and sum(map(len, self.complaints)) < MAX_COMPLAINT_BYTES:
                self.complaints.append(line)
        elif (found := _PASSED_BY.search(line)) is not None:
            if self._can_count(found[1]):
                self.binary += found[2] is not None
                self.too_large += found[2] is None
        elif (found := _IGNORED.search(line)) is not None:
            if self._can_count(found[1]):
                self.ignored.append(strip_dot_slash(found[1]))
        elif (found := _LINK.search(line)) is not None and self._can_count(found[1]):
            self.links.append(strip_dot_slash(found[1]))

    def _can_count(self, path: bytes) -> bool:
        return self.is_hidden is None or not self.is_hidden(strip_dot_slash(path))
