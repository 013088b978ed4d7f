"""What the user said for good about folders and rules; kept outside any project.

Trust goes with the hooks the folder had when it was given: other hooks need it given again.
"""

import os
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.disk.faults import DiskFault
from handaxe.disk.versions import ABSENT, Absent, Version, read_regular
from handaxe.text.wellformed import is_well_formed

FILE_NAME = "handaxe-trust.json"
"""A name of its own, so that it is protected wherever the data directory lies."""
_MAX_BYTES = 16 << 20


class TrustedFolder(msgspec.Struct, frozen=True):
    """A folder whose settings files may also allow."""

    path: str
    at: float
    hooks: str = ""
    """Digest of the hooks that were there; empty if there were none."""


class _Record(msgspec.Struct, frozen=True):
    folders: dict[str, TrustedFolder] = {}
    servers: dict[str, dict[str, str]] = {}
    """By folder: the project's servers that may start, each with its definition's digest."""
    imports: dict[str, tuple[str, ...]] = {}
    """By folder: files outside it that its instructions may bring in."""
    rules: dict[str, dict[str, float]] = {}
    """By settings file: the rules the user allowed as an answer, and when."""


class TrustRecord:
    """The user's word on folders."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @cached_property
    def path(self) -> str:
        """The real path of the record."""
        return os.path.realpath(self._home / FILE_NAME)

    def find(self, folder: str) -> TrustedFolder | None:
        """What was said about this very folder; one above or below it does not count."""
        return self._read()[0].folders.get(os.path.realpath(folder))

    def folders(self) -> list[TrustedFolder]:
        """All trusted folders, by path."""
        return sorted(self._read()[0].folders.values(), key=lambda folder: folder.path)

    def trust(self, folder: str, *, hooks: str = "") -> TrustedFolder:
        """Trust a folder, with the hooks it has now."""
        real = os.path.realpath(folder)
        if not Path(real).is_dir():
            raise SetupError(f"{folder} is not a directory. Name the project's directory.")
        if not is_well_formed(real):
            raise SetupError("The folder's name is not UTF-8, so it cannot be noted as trusted.")
        trusted = TrustedFolder(real, time.time(), hooks)
        record, version = self._read()
        folders = {**record.folders, real: trusted}
        self._write(msgspec.structs.replace(record, folders=folders), version)
        return trusted

    def servers(self, folder: str) -> dict[str, str]:
        """The project's servers that may start, by name, with the digest that was approved."""
        return self._read()[0].servers.get(os.path.realpath(folder), {})

    def approve_servers(self, folder: str, digests: dict[str, str]) -> None:
        """Let servers of a project start as long as their definitions stay as they are."""
        record, version = self._read()
        real = os.path.realpath(folder)
        known = {**record.servers.get(real, {}), **digests}
        servers = {**record.servers, real: known}
        self._write(msgspec.structs.replace(record, servers=servers), version)

    def imports(self, folder: str) -> tuple[str, ...]:
        """The files outside a project that its instructions may bring in."""
        return self._read()[0].imports.get(os.path.realpath(folder), ())

    def approve_import(self, folder: str, path: str) -> None:
        """Let a project's instructions bring in a file from outside."""
        record, version = self._read()
        real = os.path.realpath(folder)
        known = dict.fromkeys((*record.imports.get(real, ()), path))
        imports = {**record.imports, real: tuple(known)}
        self._write(msgspec.structs.replace(record, imports=imports), version)

    def rules(self) -> dict[str, dict[str, float]]:
        """By settings file: the rules that were allowed as an answer, and when."""
        return self._read()[0].rules

    def note_rules(self, file: str, rules: Iterable[str]) -> None:
        """The user allowed these just now, and they stand in a settings file."""
        record, version = self._read()
        known = {**record.rules.get(file, {}), **dict.fromkeys(rules, time.time())}
        noted = {**record.rules, file: known}
        self._write(msgspec.structs.replace(record, rules=noted), version)

    def forget_rule(self, file: str, rule: str) -> None:
        """The user took a rule back."""
        record, version = self._read()
        if rule not in record.rules.get(file, {}):
            return
        known = {text: at for text, at in record.rules[file].items() if text != rule}
        noted = {**record.rules, file: known}
        self._write(msgspec.structs.replace(record, rules=noted), version)

    def revoke(self, folder: str) -> bool:
        """Trust a folder no longer, there or not; whether it was trusted."""
        record, version = self._read()
        known = record.folders.keys() | record.servers.keys() | record.imports.keys()
        names = {folder, os.path.realpath(folder)} & known
        if names:
            kept = {path: told for path, told in record.folders.items() if path not in names}
            servers = {path: told for path, told in record.servers.items() if path not in names}
            imports = {path: told for path, told in record.imports.items() if path not in names}
            record = msgspec.structs.replace(record, folders=kept, servers=servers, imports=imports)
            self._write(record, version)
        return bool(names)

    def _read(self) -> tuple[_Record, Version | Absent]:
        try:
            data, version = read_regular(self.path, max_bytes=_MAX_BYTES)
        except FileNotFoundError:
            return _Record(), ABSENT
        except (DiskFault, OSError) as error:
            raise SetupError(f"{self.path} cannot be read: {error}.") from None
        try:
            return msgspec.json.decode(data, type=_Record), version
        except msgspec.DecodeError as error:
            raise SetupError(
                f"{self.path} is damaged ({error}). Remove it and trust again."
            ) from None

    def _write(self, record: _Record, version: Version | Absent) -> None:
        from handaxe.disk import atomic

        data = msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"
        try:
            atomic.replace(self.path, [data], expect=version, mode=0o600, make_parents=True)
        except DiskFault as error:
            raise SetupError(f"{self.path} cannot be written: {error}.") from None
