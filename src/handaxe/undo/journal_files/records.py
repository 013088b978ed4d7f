"""The records of an undo journal, one JSON value per line.

A call has a `Before` (durable before the change) and an `After` (what it left). A `Before` without
an `After` belongs to a running call or to a crashed one.
"""

import os
from pathlib import Path
from typing import Annotated, Literal, TypeGuard

import msgspec

from handaxe.text.paths import quote_path

LATE_S = 60.0
"""A file written longer than this after the start of a crashed call may be foreign ..."""
COMMAND_S = 660.0
"""... and likewise after the start of a command."""
_KEPT = (
    r"\A(?:blob:[0-9a-f]+|pin:[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"
    r"|bundle:[0-9a-f]+\.bundle@[0-9]+)?\Z"
)
StateKind = Literal["absent", "file", "link", "directory", "special"]


class ContentSplice(msgspec.Struct, frozen=True):
    """Small new content as the difference from the content before."""

    same_head: int
    same_tail: int
    middle: bytes


class PathState(msgspec.Struct, frozen=True, omit_defaults=True):
    """The state of a path at one moment."""

    path: str
    kind: StateKind
    raw_path: bytes = b""
    """The path's bytes, if it is not valid UTF-8."""
    digest: str = ""
    """SHA-256 of a file; empty for a large file without a known hash."""
    size_bytes: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    dev: int = 0
    ino: int = 0
    born_ns: int = 0
    """When a hard-linked file was created; 0 for other files or if unknown."""
    extended: dict[str, bytes] = {}
    target: bytes = b""
    """The target of a symbolic link."""
    content: bytes | None = None
    """The content of a small file."""
    kept: Annotated[str, msgspec.Meta(pattern=_KEPT)] = ""
    """The file name of a larger content in the store; never another path."""
    splice: ContentSplice | None = None
    shared_with: tuple[bytes, ...] = ()
    """Other names of the same file, to link again."""
    type_bits: int = 0
    """The type of a special file."""
    missing_parents: int = 0
    """How many of the directories above were missing too."""
    names: tuple[str, ...] | None = None
    """For a directory: patterns of new names in it that count, or None for everything below it."""

    @property
    def place(self) -> str:
        """The path for system calls."""
        return os.fsdecode(self.raw_path) if self.raw_path else self.path

    @property
    def shown(self) -> str:
        """The path for display and input."""
        return quote_path(self.place)

    def is_same(self, other: "PathState") -> bool:
        """Whether kind and content are equal; modes and times are ignored."""
        if self.kind != other.kind:
            return False
        if self.kind == "link":
            return self.target == other.target
        if self.kind != "file":
            return True
        if self.size_bytes != other.size_bytes:
            return False
        if self.digest and other.digest:
            return self.digest == other.digest
        return self.is_same_inode(other)

    def has_more_parents(self, other: "PathState") -> bool:
        """Whether both are missing, but a directory above was created."""
        is_nothing = self.kind == other.kind == "absent"
        return is_nothing and self.missing_parents < other.missing_parents

    def is_same_inode(self, other: "PathState") -> bool:
        """Whether both are the same unwritten file."""
        return (self.dev, self.ino, self.size_bytes, self.mtime_ns) == (
            other.dev,
            other.ino,
            other.size_bytes,
            other.mtime_ns,
        )


class JournalStart(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="record", tag="start"
):
    """The first record: the owner of the journal."""

    session_id: str
    root: str
    raw_root: bytes = b""
    """The root's bytes, if it is not valid UTF-8."""

    @property
    def place(self) -> str:
        """The root for system calls."""
        return os.fsdecode(self.raw_root) if self.raw_root else self.root


class BeforeRecord(msgspec.Struct, frozen=True, tag_field="record", tag="before"):
    """A call is about to change these paths."""

    call_id: str
    tool: str
    at: float
    states: tuple[PathState, ...]
    left_out: tuple[str, ...] = ()
    """Directories that are left out because they are too big."""
    paths_only: bool = False
    """Whether only these exact paths change, nothing below them."""
    late_s: float = LATE_S
    outside: tuple[bytes, ...] = ()
    """The paths outside the working directories."""
    clock: str = ""
    """The time of `read_clock`, here and below."""


class TrackedRecord(msgspec.Struct, frozen=True, tag_field="record", tag="tracked"):
    """A call may change anything below these directories; their state is in a manifest."""

    call_id: str
    tool: str
    at: float
    scopes: tuple[bytes, ...]
    manifest: bytes
    length: int
    """The length of the manifest when the call began."""
    left_out: tuple[str, ...] = ()
    outside: tuple[PathState, ...] = ()
    """The states of paths outside the working directories that it may change too."""
    places: tuple[tuple[bytes, tuple[str, ...] | None], ...] = ()
    """The write targets in its words, as `write_extent.Places`."""
    trace: bytes = b""
    """The file that may hold a trace of its writes."""
    clock: str = ""


class AmbiguousPath(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that changed while a call ran, but not certainly by it."""

    path: bytes
    session_id: str = ""
    """Another session that recorded the change as its own."""
    is_contested: bool = False
    """Whether the call wrote the path too."""


class MovedRecord(msgspec.Struct, frozen=True, tag_field="record", tag="moved", omit_defaults=True):
    """The changed paths of such a call, before and after; more records may follow."""

    call_id: str
    at: float
    found: tuple[PathState, ...]
    left: tuple[PathState, ...]
    found_late: bool = False
    doubtful: tuple[str, ...] = ()
    ambiguous: tuple[AmbiguousPath, ...] = ()
    is_traced: bool = False
    """Whether all processes of the call were traced."""
    clock: str = ""


class AfterRecord(msgspec.Struct, frozen=True, tag_field="record", tag="after", omit_defaults=True):
    """The call ended; the states of its changed paths."""

    call_id: str
    at: float
    states: tuple[PathState, ...]
    found_late: bool = False
    """Whether it was determined only after a crash."""
    doubtful: tuple[str, ...] = ()
    """Paths that were written so late that others may have written them."""
    ambiguous: tuple[AmbiguousPath, ...] = ()
    clock: str = ""


class UndoRecord(msgspec.Struct, frozen=True, tag_field="record", tag="undid"):
    """A call undoes other calls: written at its start and at its end."""

    call_id: str
    calls: tuple[str, ...]
    is_complete: bool
    is_partial: bool = False
    """Whether the undo was limited to some paths of those calls."""
    by_owner: bool = False
    """Whether the session's owner requested it, not the model."""


Record = JournalStart | BeforeRecord | AfterRecord | TrackedRecord | MovedRecord | UndoRecord

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """A record as one line of JSON."""
    return _encoder.encode(record)


def decode(payload: bytes) -> Record:
    """The record of a line; raises msgspec's errors for anything else."""
    return _decoder.decode(payload)


def find_states(record: Record) -> tuple[PathState, ...]:
    """The states of a record that may have contents."""
    match record:
        case BeforeRecord():
            return record.states
        case TrackedRecord():
            return record.outside
        case MovedRecord():
            return record.found
        case _:
            return ()


def has_changes(record: Record) -> TypeGuard[AfterRecord | MovedRecord]:
    """Whether a record says that a call changed something."""
    match record:
        case AfterRecord():
            return bool(record.states)
        case MovedRecord():
            return bool(record.left)
        case _:
            return False


def encode_path(path: str) -> tuple[str, bytes]:
    """A path for JSON, and its bytes if JSON loses something."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raw = os.fsencode(path)
        return raw.decode(errors="replace"), raw
    return path, b""


JOURNAL_NAME = "journal.jsonl"
LOCK_NAME = "journal.lock"
PRUNED_NAME = "journal.pruned"
ENDED_NAME = "journal.ended"
NEW_JOURNAL_NAME = ".journal.new"
"""A part of a journal that is being rewritten."""


def get_blobs_directory(home: Path) -> Path:
    """Contents by hash, shared by all sessions."""
    return home / "blobs"


def get_pins_directory(home: Path) -> Path:
    """Hard links of replaced files, shared by all sessions."""
    return home / "pins"


def get_in_place_directory(home: Path) -> Path:
    """The journal of in-place writes."""
    return home / "in-place"


def list_journal_files(session: Path) -> list[Path]:
    """The journal of a session in order: closed parts, then the open one."""
    current = session / JOURNAL_NAME
    parts = sorted(session.glob("journal-*.jsonl"))
    return [*parts, current] if current.exists() else parts


def find_newest_record(session: Path) -> Path | None:
    """The most recently written file of a session's record; None if it changed nothing.

    This can be the list of pruned or ended calls.
    """
    lists = (session / name for name in (PRUNED_NAME, ENDED_NAME))
    left = (path for path in lists if path.exists())
    return next(iter(list_journal_files(session)[-1:]), next(left, None))
