"""The option tables of programs, loaded once from the TOML files next to this module."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, json

from handaxe.text.secrets import is_secret_name

_DATA = Path(__file__).parent / "programs"
_VERSION_WORDS = {
    "programs": "--version",
    "short": "-v",
    "capital": "-V",
    "single": "-version",
    "bare": "version",
}


class ProgramTable(Struct, frozen=True):
    """The arguments of one program: options by name with their value types, operand types."""

    flags: frozenset[str] = frozenset()
    valued: dict[str, str] = {}
    optional: frozenset[str] = frozenset()
    """Names whose value can only be attached."""
    operands: tuple[str, ...] = ()
    number_option: bool = False
    bundles: bool = True
    """Whether `-ab` means `-a -b`."""
    posix: bool = False
    """Options end at the first operand."""
    at_files: bool = False
    """Whether a word `@FILE` inserts the arguments in that file."""
    sweeps: bool = False
    """Whether a directory operand means the files below it, links followed."""
    subcommands: frozenset[str] = frozenset()
    """Allowed first words; a dash means an option or no word at all."""
    refused_words: frozenset[str] = frozenset()
    """Operands that would be another subcommand."""
    uses: frozenset[str] = frozenset()
    """System programs that this one runs."""
    is_verified: bool = True
    """Whether every option was run under the recorder; others are not read-only."""
    globs: str = "anchored"
    pattern_from: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    """With operands, one of these options is required."""
    requires: frozenset[str] = frozenset()
    """One of these options is always required."""
    apart: tuple[tuple[str, str], ...] = ()
    """Pairs of options that are harmless only separately."""
    together: tuple[tuple[str, str], ...] = ()
    """Options that are harmless only together with another one."""
    alone: frozenset[str] = frozenset()
    """Options that allow no operand."""
    min_operands: int = 0
    max_operands: int = 0
    check: str = ""


def split_names(text: str) -> frozenset[str]:
    """The words of `text` as a set."""
    return frozenset(text.split())


def load_toml(name: str) -> dict[str, Any]:
    """One of the data files."""
    return read_plain_toml((_DATA / name).read_text("utf-8"))


def read_plain_toml(text: str) -> dict[str, Any]:
    """Parse TOML with one value per line, each of which is also JSON, as in the data files.

    The first command of a process waits for this, and a full TOML parser takes ten times as long.
    """
    whole: dict[str, Any] = {}
    table = whole
    for line in text.splitlines():
        if line.startswith("[["):
            table = {}
            whole.setdefault(line[2:-2], []).append(table)
        elif line.startswith("["):
            table = whole[line[1:-1].strip('"')] = {}
        elif line and not line.startswith("#"):
            name, _, value = line.partition(" = ")
            table[name.strip('"')] = json.decode(value)
    return whole


@cache
def load_programs() -> dict[str, ProgramTable]:
    """Every program of the data files by name, verified or not."""
    tables: dict[str, ProgramTable] = {}
    for name in ("files.toml", "system.toml"):
        tables.update(make_tables(load_toml(name), getopt="exact"))
    return tables


@cache
def load_read_only_programs() -> dict[str, ProgramTable]:
    """Programs of the read-only set by name."""
    return {name: table for name, table in load_programs().items() if table.is_verified}


@cache
def load_git_forms() -> dict[str, ProgramTable]:
    """Read-only git subcommands by name."""
    return make_tables(load_toml("git.toml"), getopt="exact")


@cache
def load_version_calls() -> dict[str, frozenset[str]]:
    """The single words with which a program may be called to print its version."""
    raw = load_toml("system.toml")["versions"]
    without = raw["without"].split()
    calls = {name: {"--version"} for name in load_read_only_programs() if name not in without}
    for key, word in _VERSION_WORDS.items():
        for program in raw[key].split():
            calls.setdefault(program, set()).add(word)
    return {program: frozenset(words) for program, words in calls.items()}


def make_tables(raw: dict[str, Any], *, getopt: str = "gnu") -> dict[str, ProgramTable]:
    """Option tables from the entries of a data file.

    `getopt` is the default way to read options: `gnu` bundles letters and takes options after
    operands, `posix` only bundles, `exact` does neither.
    """
    tables: dict[str, ProgramTable] = {}
    for name, entry in raw.items():
        if name in ("versions", "history"):
            continue
        table = _make_table({"getopt": getopt, **raw.get(entry.get("inherits", ""), {}), **entry})
        for alias in (name, *entry.get("same", "").split()):
            tables[alias] = table
    return tables


def _make_table(entry: dict[str, Any]) -> ProgramTable:
    valued: dict[str, str] = {}
    optional: set[str] = set()
    for item in f"{entry.get('valued', '')} {entry.get('long_valued', '')}".split():
        name, _, kind = item.partition(":")
        if name.endswith("?"):
            name = name[:-1]
            optional.add(name)
        valued[name] = kind or "text"
    flags = frozenset(entry.get("flags", "")) | frozenset(entry.get("long", "").split())
    unverified = frozenset(entry.get("unverified", "").split())
    return ProgramTable(
        flags=flags - unverified,
        valued={name: kind for name, kind in valued.items() if name not in unverified},
        optional=frozenset(optional),
        operands=tuple(entry.get("operands", "").split()),
        number_option=entry.get("number_option", False),
        bundles=entry["getopt"] != "exact",
        posix=entry["getopt"] != "gnu" or entry.get("posix", False),
        at_files=entry.get("at_files", False),
        sweeps=entry.get("sweeps", False),
        subcommands=frozenset(entry.get("subcommands", "").split()),
        refused_words=frozenset(entry.get("refused_words", "").split()),
        uses=frozenset(entry.get("uses", "").split()),
        is_verified="*" not in unverified,
        globs=entry.get("globs", "anchored"),
        pattern_from=frozenset(entry.get("pattern_from", "").split()),
        needs=frozenset(entry.get("needs", "").split()),
        requires=frozenset(entry.get("requires", "").split()),
        apart=_split_pairs(entry.get("apart", "")),
        together=_split_pairs(entry.get("together", "")),
        alone=frozenset(entry.get("alone", "").split()),
        min_operands=entry.get("min_operands", 0),
        max_operands=entry.get("max_operands", 0),
        check=entry.get("check", ""),
    )


def _split_pairs(text: str) -> tuple[tuple[str, str], ...]:
    return tuple((first, second) for first, _, second in (p.partition(":") for p in text.split()))


_Value = TypeVar("_Value")

_SERIES = re.compile(r"(.*?[A-Za-z+]\d*)(?:[.-]\d[\d.]*)")
_DIGITS = re.compile(r"(.*?[A-Za-z+])[.-]?\d[\d.]*")


@lru_cache(maxsize=4096)
def get_base_name(path: str) -> str:
    """The last component of a path, without `.exe`."""
    name = path.rstrip("/").rpartition("/")[2]
    return name[:-4] if name[-4:].lower() == ".exe" and len(name) > 4 else name


@lru_cache(maxsize=4096)
def strip_version(name: str) -> str:
    """The name without a minor version: `python3` for `python3.12`, `gcc` for `gcc-12`."""
    found = _SERIES.fullmatch(name)
    return found[1] if found else name


@lru_cache(maxsize=4096)
def strip_digits(name: str) -> str:
    """The name without any version: `python` for `python3`."""
    found = _DIGITS.fullmatch(name)
    return found[1] if found else name


def find_program(table: Mapping[str, _Value], name: str) -> _Value | None:
    """The table entry for a program or for the program of which it is a version."""
    for known in (name, strip_version(name), strip_digits(name)):
        if known in table:
            return table[known]
    return None


@lru_cache(maxsize=4096)
def compare_names(ruled: str, name: str) -> str:
    """Whether a rule's program is this one: "yes", "maybe" (another version) or "no"."""
    if ruled == name or strip_version(ruled) == strip_version(name):
        return "yes"
    if ruled == strip_digits(name):
        return "yes"
    return "maybe" if strip_digits(ruled) == name else "no"


__all__ = ["HARMLESS", "is_harmless_prefix", "is_own_variable", "is_secret_name"]

HARMLESS = split_names(
    "NODE_ENV CI LANG LC_ALL TZ NO_COLOR FORCE_COLOR PYTHONUNBUFFERED LC_CTYPE LC_COLLATE "
    "LC_MESSAGES LC_NUMERIC LC_TIME LC_MONETARY COLUMNS CLICOLOR CLICOLOR_FORCE "
    "RUST_BACKTRACE PYTHONDONTWRITEBYTECODE PYTHONIOENCODING GIT_OPTIONAL_LOCKS"
)
"""Names whose value cannot change which program runs or what it may do."""

_OWN_UPPER = split_names(
    "FILE FILES DIR DIRS N I J X Y NAME NAMES COUNT TOTAL SRC DST DEST OUT PATTERN VERSION "
    "LINE LINES_ RESULT RESULTS BRANCH COMMIT SHA FROM TO START ITEM MSG MESSAGE EXT ROOT_DIR"
)
_HARMLESS_VALUE = r"(?a)[\w.+:@,/ -]*"


def is_own_variable(name: str) -> bool:
    """Whether setting `name` in the shell can only influence this command's own text."""
    if name in HARMLESS or name in _OWN_UPPER:
        return True
    return (
        name.islower() and not name.endswith("proxy") and name not in ("histchars", "auto_resume")
    )


def is_harmless_prefix(name: str, value: str | None) -> bool:
    """Whether `name=value` before a program does not influence what runs."""
    return name in HARMLESS and value is not None and bool(re.fullmatch(_HARMLESS_VALUE, value))
