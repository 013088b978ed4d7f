"""A tree on disk: one frame per directory; the last frame of a directory counts.

Changes are appended. Reading up to a length gives the tree at that time, which recovery after a
crash needs.
"""

import os
import struct
import zlib
from collections.abc import Iterable, Iterator, MutableMapping
from pathlib import Path

import msgspec

from handaxe.disk.durability import close, sync_content, sync_names
from handaxe.disk.errors import DiskFault
from handaxe.undo.snapshot.nodes import Node

_HEAD = struct.Struct("<II")
_APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
_VERSION = 1


Listing = dict[str, Node]
"""The names in a directory."""


class Listings(MutableMapping[str, Listing]):
    """Listings by directory, each read from its frame on demand.

    A small command needs few of them, and reading all would be most of its cost.
    """

    def __init__(self) -> None:
        self._found: dict[str, Listing | _Listing] = {}

    def note(self, frame: "_Listing") -> None:
        """Use a frame for its directory from now on."""
        if bytes(frame.nodes) == _NOTHING:
            self._found.pop(os.fsdecode(frame.directory), None)
        else:
            self._found[os.fsdecode(frame.directory)] = frame

    def __getitem__(self, directory: str) -> Listing:
        found = self._found[directory]
        if not isinstance(found, dict):
            names = os.fsdecode(found.names).split("\0") if found.names else []
            found = dict(zip(names, _decode_nodes(found.nodes), strict=True))
            self._found[directory] = found
        return found

    def __setitem__(self, directory: str, listing: Listing) -> None:
        self._found[directory] = listing

    def __delitem__(self, directory: str) -> None:
        del self._found[directory]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __contains__(self, directory: object) -> bool:
        return directory in self._found


class Manifest(msgspec.Struct):
    """A tree in its stored form."""

    roots: dict[str, Node | None] = {}
    directories: MutableMapping[str, Listing] = {}
    left_out: dict[str, str] = {}
    packs: str = ""
    """The directory of the contents."""
    written: bytes = b""
    """The whole file as read."""


class _Listing(msgspec.Struct, array_like=True, tag=0):
    directory: bytes
    names: bytes
    nodes: msgspec.Raw


class _Frame(msgspec.Struct, array_like=True, tag=1):
    version: int
    packs: bytes
    roots: list[tuple[bytes, Node | None]]
    left_out: list[tuple[bytes, str]]


class Damaged(DiskFault):
    """A manifest cannot be read completely."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Listing | _Frame).decode
_decode_nodes = msgspec.msgpack.Decoder(list[Node]).decode
_NOTHING = _encode(None)


class ManifestFile:
    """Appends to one manifest."""

    def __init__(self, path: Path, length: int = 0) -> None:
        self.path = path
        self.length = length
        self._fd = -1
        self._has_lasting_name = False

    def write(self, manifest: Manifest, directories: Iterable[str], after: bytes = b"") -> None:
        """Write these directories of a tree, and data about the whole.

        `after` is an existing manifest that has all other directories.
        """
        frames = [_encode(_frame(manifest))]
        frames += [_encode(_to_stored_listing(d, manifest.directories.get(d))) for d in directories]
        data = after + b"".join(_HEAD.pack(len(f), zlib.crc32(f)) + f for f in frames)
        if self._fd < 0:
            self._fd = os.open(self.path, _APPEND, 0o600)
            self.length = os.fstat(self._fd).st_size
        # The disk may have been full in the middle of the last attempt.
        os.ftruncate(self._fd, self.length)
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]
        sync_content(self._fd)
        if not self._has_lasting_name:
            sync_names(self.path.parent)
            self._has_lasting_name = True
        self.length += len(data)

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            close(self._fd)
            self._fd = -1


def read_manifest(path: Path, length: int | None = None) -> Manifest:
    """The tree of a manifest; with `length`, when it had that length.

    Raises:
        Damaged: it is incomplete.
    """
    try:
        with path.open("rb") as file:
            data = file.read() if length is None else file.read(length)
    except OSError as error:
        raise Damaged(f"{path} cannot be read") from error
    if length is not None and len(data) < length:
        raise Damaged(f"{path} is shorter than before")
    listings = Listings()
    manifest = Manifest(directories=listings, written=data)
    at = 0
    while at < len(data):
        try:
            size, crc = _HEAD.unpack_from(data, at)
            at += _HEAD.size
            payload = data[at : at + size]
            at += size
            if zlib.crc32(payload) != crc:
                raise Damaged(f"{path} is damaged")
            frame = _decode(payload)
        except (struct.error, msgspec.MsgspecError) as error:
            raise Damaged(f"{path} is damaged") from error
        if isinstance(frame, _Listing):
            listings.note(frame)
        else:
            _take(manifest, frame)
    return manifest


def _take(manifest: Manifest, frame: _Frame) -> None:
    if frame.version != _VERSION:
        raise Damaged("it was written by another version")
    manifest.packs = os.fsdecode(frame.packs)
    manifest.roots = {os.fsdecode(root): node for root, node in frame.roots}
    manifest.left_out = {os.fsdecode(path): why for path, why in frame.left_out}


def _frame(manifest: Manifest) -> _Frame:
    return _Frame(
        _VERSION,
        os.fsencode(manifest.packs),
        [(os.fsencode(root), node) for root, node in manifest.roots.items()],
        [(os.fsencode(path), why) for path, why in manifest.left_out.items()],
    )


def _to_stored_listing(directory: str, listing: Listing | None) -> _Listing:
    if listing is None:
        return _Listing(os.fsencode(directory), b"", msgspec.Raw(_NOTHING))
    nodes = msgspec.Raw(_encode(list(listing.values())))
    return _Listing(os.fsencode(directory), os.fsencode("\0".join(listing)), nodes)
