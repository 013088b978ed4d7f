"""The user's lasting decisions about folders and rules, outside any project.

Trust goes with what the folder's files wanted to do when it was given: what they want since then
needs it given again.
"""

import os
import time
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec

from handaxe.contract.decision import ToolDefinition, find_bound_definitions
from handaxe.contract.faults import SetupError
from handaxe.disk.errors import DiskFault
from handaxe.disk.versions import ABSENT, Absent, Version, read_regular
from handaxe.storage.home import make_durable_directory
from handaxe.text.sanitize import is_well_formed

T = TypeVar("T")
FILE_NAME = "handaxe-trust.json"
"""A name of its own, so that it is protected wherever the data directory lies."""
_MAX_BYTES = 16 << 20
_MAX_DEFINITIONS = 8


class TrustedFolder(msgspec.Struct, frozen=True):
    """A folder whose settings files may also allow."""

    path: str
    at: float
    listed: bool = False
    """Whether it counts only as long as the setting `trusted_folders` names it."""


class _Record(msgspec.Struct, frozen=True):
    folders: dict[str, TrustedFolder] = {}
    approved: dict[str, dict[str, str]] = {}
    """By folder: the approvals for its files, each by the key and the note of the request."""
    imports: dict[str, tuple[str, ...]] = {}
    """By folder: files outside it that its instructions may bring in, after their digests."""
    rules: dict[str, dict[str, float]] = {}
    """By settings file: the rules the user allowed as an answer, and when."""
    approvals: msgspec.Raw = msgspec.Raw(b"{}")
    """By settings file and rule: the servers' tools that such a rule was given for. Read by few."""


_Approvals = dict[str, dict[str, tuple[ToolDefinition, ...]]]


class TrustRecord:
    """The user's word on folders."""

    def __init__(self, home: Path) -> None:
        self._home = home

    @cached_property
    def path(self) -> str:
        """The real path of the record."""
        return os.path.realpath(self._home / FILE_NAME)

    def find(self, folder: str) -> TrustedFolder | None:
        """The decision about exactly this folder, or about the checkout of an agent's worktree.

        A folder above or below does not count.
        """
        return _look_up(self._read()[0].folders, folder)

    def folders(self) -> list[TrustedFolder]:
        """All trusted folders, by path."""
        return sorted(self._read()[0].folders.values(), key=lambda folder: folder.path)

    def trust(
        self, folder: str, approved: Mapping[str, str], *, listed: bool = False
    ) -> TrustedFolder:
        """Trust a folder with what its files want to do now, and with nothing else."""
        real = os.path.realpath(folder)
        if not Path(real).is_dir():
            raise SetupError(f"{folder} is not a directory. Name the project's directory.")
        if not is_well_formed(real):
            raise SetupError("The folder's name is not UTF-8, so it cannot be noted as trusted.")
        trusted = TrustedFolder(real, time.time(), listed)
        record, version = self._read()
        folders = {**record.folders, real: trusted}
        known = {**record.approved, real: _drop_malformed(approved)}
        record = msgspec.structs.replace(record, folders=folders, approved=known)
        self._write(record, version)
        return trusted

    def approved(self, folder: str) -> Mapping[str, str]:
        """The permissions of a folder's files, by key, at the time of the approval."""
        return _look_up(self._read()[0].approved, folder) or {}

    def approve(self, folder: str, notes: Mapping[str, str]) -> None:
        """Let the files of a folder do more."""
        record, version = self._read()
        real = os.path.realpath(folder)
        known = {**record.approved.get(real, {}), **_drop_malformed(notes)}
        approved = {**record.approved, real: known}
        self._write(msgspec.structs.replace(record, approved=approved), version)

    def is_import_approved(self, folder: str, path: str, digest: str) -> bool:
        """Whether a project's instructions may bring in a file from outside with this content."""
        known = self._read()[0].imports.get(os.path.realpath(folder), ())
        return f"{digest} {path}" in known

    def approve_import(self, folder: str, path: str, digest: str) -> None:
        """Let a project's instructions bring in a file from outside, as it is now."""
        record, version = self._read()
        real = os.path.realpath(folder)
        known = [one for one in record.imports.get(real, ()) if not one.endswith(f" {path}")]
        imports = {**record.imports, real: (*known, f"{digest} {path}")}
        self._write(msgspec.structs.replace(record, imports=imports), version)

    def rules(self) -> dict[str, dict[str, float]]:
        """By settings file: the rules that were allowed as an answer, and when."""
        return self._read()[0].rules

    def approvals(self) -> _Approvals:
        """By settings file and rule: the servers' tools that the rule was given for."""
        return self._decode_approvals(self._read()[0])

    def note_rules(
        self, file: str, rules: Iterable[str], definitions: Iterable[ToolDefinition] = ()
    ) -> None:
        """The user allowed these just now, and they are in a settings file.

        Rules for servers' tools hold for these definitions and the earlier approved ones.
        """
        record, version = self._read()
        rules, seen = tuple(rules), tuple(definitions)
        known = {**record.rules.get(file, {}), **dict.fromkeys(rules, time.time())}
        record = msgspec.structs.replace(record, rules={**record.rules, file: known})
        bound = {
            rule: given
            for rule in rules
            if (given := find_bound_definitions(rule, seen)) is not None
        }
        if bound:
            approvals = self._decode_approvals(record)
            of_file = approvals.setdefault(file, {})
            for rule, given in bound.items():
                of_file[rule] = _select_newest((*of_file.get(rule, ()), *given))
            raw = msgspec.Raw(msgspec.json.encode(approvals))
            record = msgspec.structs.replace(record, approvals=raw)
        self._write(record, version)

    def forget_rule(self, file: str, rule: str) -> None:
        """The user took a rule back."""
        record, version = self._read()
        if rule not in record.rules.get(file, {}):
            return
        known = {text: at for text, at in record.rules[file].items() if text != rule}
        record = msgspec.structs.replace(record, rules={**record.rules, file: known})
        approvals = self._decode_approvals(record)
        if approvals.get(file, {}).pop(rule, None) is not None:
            raw = msgspec.Raw(msgspec.json.encode(approvals))
            record = msgspec.structs.replace(record, approvals=raw)
        self._write(record, version)

    def revoke(self, folder: str) -> bool:
        """Stop trusting a folder, even if it is gone, and return whether it was trusted."""
        record, version = self._read()
        known = record.folders.keys() | record.approved.keys() | record.imports.keys()
        names = {folder, os.path.realpath(folder)} & known
        if names:
            kept = {path: told for path, told in record.folders.items() if path not in names}
            approved = {path: told for path, told in record.approved.items() if path not in names}
            imports = {path: told for path, told in record.imports.items() if path not in names}
            record = msgspec.structs.replace(
                record, folders=kept, approved=approved, imports=imports
            )
            self._write(record, version)
        return bool(names)

    def _decode_approvals(self, record: _Record) -> _Approvals:
        try:
            return msgspec.json.decode(record.approvals, type=_Approvals)
        except msgspec.DecodeError:
            # A yes whose tool is not known is asked for again, which replaces it.
            return {}

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
            make_durable_directory(Path(self.path).parent)
            atomic.replace(self.path, [data], expect=version, mode=0o600)
        except (DiskFault, OSError) as error:
            raise SetupError(f"{self.path} cannot be written: {error}.") from None


def _select_newest(given: Iterable[ToolDefinition]) -> tuple[ToolDefinition, ...]:
    """The newest definitions of each tool. Two projects may define it differently."""
    by_tool: dict[str, dict[str, ToolDefinition]] = {}
    for one in given:
        of_tool = by_tool.setdefault(one.tool, {})
        of_tool.pop(one.digest, None)
        of_tool[one.digest] = one
    return tuple(
        one for found in by_tool.values() for one in list(found.values())[-_MAX_DEFINITIONS:]
    )


def _look_up(noted: Mapping[str, T], folder: str) -> T | None:
    real = os.path.realpath(folder)
    checkout, between, name = real.partition("/.claude/worktrees/")
    is_worktree = bool(between) and "/" not in name
    return noted.get(real, noted.get(checkout) if is_worktree else None)


def _drop_malformed(notes: Mapping[str, str]) -> dict[str, str]:
    """The entries that can be stored. A file whose name is not UTF-8 is never approved."""
    return {
        key: note for key, note in notes.items() if is_well_formed(key) and is_well_formed(note)
    }
