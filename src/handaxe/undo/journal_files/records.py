"""What stands in an undo journal: one JSON value per line, described as types.

A call has a `Before` (durable ahead of the change) and an `After` (what it left). A `Before`
without an `After` is a call that still runs, or one that a crash ended.
"""

import os
from pathlib import Path
from typing import Annotated, Literal, TypeGuard

import msgspec

from handaxe.text.paths import quote_path

LATE_S = 60.0
"""A file written longer after the start of a crashed call may be somebody else's ..."""
COMMAND_S = 660.0
"""... and so may one that was written longer after the start of a command."""
_KEPT = (
    r"\A(?:blob:[0-9a-f]+|pin:[0-9a-f]+-[0-9a-f]+-[0-9a-f]+-[0-9a-f]+"
    r"|bundle:[0-9a-f]+\.bundle@[0-9]+)?\Z"
)
StateKind = Literal["absent", "file", "link", "directory", "special"]


class ContentSplice(msgspec.Struct, frozen=True):
    """Small new content, as what differs from the content before."""

    same_head: int
    same_tail: int
    middle: bytes


class PathState(msgspec.Struct, frozen=True, omit_defaults=True):
    """What stood at a path at one moment."""

    path: str
    kind: StateKind
    raw_path: bytes = b""
    """The path's bytes, where they are not UTF-8."""
    digest: str = ""
    """SHA-256 of a file; empty for a large one that nobody had hashed."""
    size_bytes: int = 0
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    dev: int = 0
    ino: int = 0
    born_ns: int = 0
    """When a file with several names was made; 0 of one with a single name, or if nobody knows."""
    extended: dict[str, bytes] = {}
    target: bytes = b""
    """Where a symbolic link points."""
    content: bytes | None = None
    """A small file whole."""
    kept: Annotated[str, msgspec.Meta(pattern=_KEPT)] = ""
    """Where the content store has a larger one: the name of a file in it, and no other path."""
    splice: ContentSplice | None = None
    shared_with: tuple[bytes, ...] = ()
    """Other names of the same file, which it should share again."""
    type_bits: int = 0
    """What a special file is."""
    missing_parents: int = 0
    """How many of the directories above were not there either."""
    names: tuple[str, ...] | None = None
    """Of a directory: which new names in it count, as patterns; None: everything below it."""

    @property
    def place(self) -> str:
        """The path as the system takes it."""
        return os.fsdecode(self.raw_path) if self.raw_path else self.path

    @property
    def shown(self) -> str:
        """The path as people and models are shown it, and may give it back."""
        return quote_path(self.place)

    def is_same(self, other: "PathState") -> bool:
        """Whether both are the same thing with the same content; modes and times aside."""
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
        """Whether both are nothing, but directories were made on the way to this one."""
        is_nothing = self.kind == other.kind == "absent"
        return is_nothing and self.missing_parents < other.missing_parents

    def is_same_inode(self, other: "PathState") -> bool:
        """Whether both are one file that nobody wrote to in between."""
        return (self.dev, self.ino, self.size_bytes, self.mtime_ns) == (
            other.dev,
            other.ino,
            other.size_bytes,
            other.mtime_ns,
        )


class JournalStart(
    msgspec.Struct, frozen=True, omit_defaults=True, tag_field="record", tag="start"
):
    """The first record: whose journal this is."""

    session_id: str
    root: str
    raw_root: bytes = b""
    """The root's bytes, where they are not UTF-8."""

    @property
    def place(self) -> str:
        """The root as the system takes it."""
        return os.fsdecode(self.raw_root) if self.raw_root else self.root


class BeforeRecord(msgspec.Struct, frozen=True, tag_field="record", tag="before"):
    """A call is about to change these paths."""

    call_id: str
    tool: str
    at: float
    states: tuple[PathState, ...]
    left_out: tuple[str, ...] = ()
    """Places below which there was too much to remember."""
    paths_only: bool = False
    """Whether only these very paths change, and nothing else below a directory among them."""
    late_s: float = LATE_S
    outside: tuple[bytes, ...] = ()
    """Which of the paths lie outside the working directories."""
    clock: str = ""
    """The time as `boot_clock.read_clock` gives it, here and below."""


class TrackedRecord(msgspec.Struct, frozen=True, tag_field="record", tag="tracked"):
    """A call may change anything below these places; what is there is written down elsewhere."""

    call_id: str
    tool: str
    at: float
    scopes: tuple[bytes, ...]
    manifest: bytes
    length: int
    """How much of the manifest was written when the call began."""
    left_out: tuple[str, ...] = ()
    outside: tuple[PathState, ...] = ()
    """What stood at paths outside the working directories that it may change as well."""
    places: tuple[tuple[bytes, tuple[str, ...] | None], ...] = ()
    """What its words say that it writes, as `extents.Places`."""
    trace: bytes = b""
    """The file in which a trace of what it writes may be."""
    clock: str = ""


class AmbiguousPath(msgspec.Struct, frozen=True, omit_defaults=True):
    """A path that changed while a call ran, and not surely by it."""

    path: bytes
    session_id: str = ""
    """Another session that recorded the change as its own."""
    is_contested: bool = False
    """Whether the call wrote the path as well."""


class MovedRecord(msgspec.Struct, frozen=True, tag_field="record", tag="moved", omit_defaults=True):
    """What such a call found and what it left, of the paths it changed; more may follow."""

    call_id: str
    at: float
    found: tuple[PathState, ...]
    left: tuple[PathState, ...]
    found_late: bool = False
    doubtful: tuple[str, ...] = ()
    ambiguous: tuple[AmbiguousPath, ...] = ()
    is_traced: bool = False
    """Whether every process of the call was watched as it wrote."""
    clock: str = ""


class AfterRecord(msgspec.Struct, frozen=True, tag_field="record", tag="after", omit_defaults=True):
    """The call ended; of its paths, those that it changed and how they are now."""

    call_id: str
    at: float
    states: tuple[PathState, ...]
    found_late: bool = False
    """Whether somebody looked only after a crash."""
    doubtful: tuple[str, ...] = ()
    """Paths that were written so late that it may have been somebody else."""
    ambiguous: tuple[AmbiguousPath, ...] = ()
    clock: str = ""


class UndoRecord(msgspec.Struct, frozen=True, tag_field="record", tag="undid"):
    """A call puts back what other calls had changed: written when it begins, and at its end."""

    call_id: str
    calls: tuple[str, ...]
    is_complete: bool
    is_partial: bool = False
    """Whether only some paths of those calls were asked for."""
    by_owner: bool = False
    """Whether the owner of the session asked for it, and not the model."""


Record = JournalStart | BeforeRecord | AfterRecord | TrackedRecord | MovedRecord | UndoRecord

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Record] = msgspec.json.Decoder(Record)


def encode(record: Record) -> bytes:
    """A record as one line of JSON."""
    return _encoder.encode(record)


def decode(payload: bytes) -> Record:
    """The record of a line; raises msgspec's errors on anything else."""
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
    """Whether a record says that a call left something changed."""
    match record:
        case AfterRecord():
            return bool(record.states)
        case MovedRecord():
            return bool(record.left)
        case _:
            return False


def encode_path(path: str) -> tuple[str, bytes]:
    """A path as JSON can hold it, and its bytes where that loses something."""
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
"""A part of a journal that is being written anew."""


def get_blobs_directory(home: Path) -> Path:
    """Contents by their hash, shared by all sessions."""
    return home / "blobs"


def get_pins_directory(home: Path) -> Path:
    """Second names of files that were replaced, shared by all sessions."""
    return home / "pins"


def get_in_place_directory(home: Path) -> Path:
    """The journal of writes that cannot be atomic by themselves."""
    return home / "in-place"


def list_journal_files(session: Path) -> list[Path]:
    """The journal of a session in order: full parts, then the one that grows."""
    current = session / JOURNAL_NAME
    parts = sorted(session.glob("journal-*.jsonl"))
    return [*parts, current] if current.exists() else parts


def find_newest_record(session: Path) -> Path | None:
    """The file of a session's record that was written last; None if it changed nothing.

    Where nothing else is left, that is the list of pruned calls, or of those that there were.
    """
    lists = (session / name for name in (PRUNED_NAME, ENDED_NAME))
    left = (path for path in lists if path.exists())
    return next(iter(list_journal_files(session)[-1:]), next(left, None))
