"""Deny and ask rules of the last valid settings files, kept in the data directory.

A file that broke between two runs still forbids that. Only deny and ask rules are kept, so the
worst that a stale or damaged record can do is to forbid too much, or nothing more.
"""

import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec

from handaxe.config.files import RestrictionStore
from handaxe.config.source import PROTECTING, Origin, SettingEntry, SettingsFragment, Source
from handaxe.disk.private import make_private, write_private

DIRECTORY = "last-rules"
MAX_BYTES = 256 << 10
MAX_FILES = 200


class _Record(msgspec.Struct, frozen=True):
    file: str
    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()


class RuleCache(RestrictionStore):
    """One small record for each settings file that forbids something."""

    def __init__(self, home: Path) -> None:
        # A plain text: every start with rules looks here, and a `Path` would cost more than that.
        self._directory = f"{home}/{DIRECTORY}"

    def entries(self, file: str, source: Source) -> tuple[SettingEntry, ...]:
        """The rules of the file that forbid something, or nothing if they are unknown."""
        try:
            record = msgspec.json.decode(_read_content(self._place(file)) or b"", type=_Record)
        except (OSError, msgspec.DecodeError, UnicodeError):
            return ()
        if record.file != file:
            return ()
        origin = Origin(source, file)
        return tuple(
            SettingEntry(path, rule, origin, "item")
            for path, rules in zip(PROTECTING, (record.deny, record.ask), strict=True)
            for rule in rules
        )

    def keep(self, fragment: SettingsFragment) -> None:
        """Remember the deny rules of a file; written only if they are new."""
        deny, ask = (
            tuple(e.value for e in fragment.entries if e.path == path and e.kind == "item")
            for path in PROTECTING
        )
        file = fragment.file or ""
        place = self._place(file)
        with suppress(OSError, UnicodeError):
            if not deny and not ask:
                if os.access(place, os.F_OK):
                    Path(place).unlink()
                return
            data = msgspec.json.encode(_Record(file, deny, ask))
            if len(data) <= MAX_BYTES and _read_content(place) != data:
                self._write(Path(place), data)

    def _write(self, place: Path, data: bytes) -> None:
        make_private(place.parent)
        draft = place.with_suffix(f".{os.getpid()}")
        write_private(draft, data)
        draft.replace(place)
        aged = sorted(place.parent.iterdir(), key=lambda one: one.stat().st_mtime_ns)
        for one in aged[:-MAX_FILES]:
            one.unlink()

    def _place(self, file: str) -> str:
        return f"{self._directory}/{sha256(os.fsencode(file)).hexdigest()[:32]}.json"


def _read_content(place: str) -> bytes | None:
    try:
        handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    try:
        return os.read(handle, MAX_BYTES + 1)
    finally:
        os.close(handle)
