"""Names of programs: without directory, version or `.exe`, so that `python3.12` is `python3`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TypeVar

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
    """The name without a minor version: `python3` of `python3.12`, `gcc` of `gcc-12`."""
    found = _SERIES.fullmatch(name)
    return found[1] if found else name


@lru_cache(maxsize=4096)
def strip_digits(name: str) -> str:
    """The name without any version: `python` of `python3`."""
    found = _DIGITS.fullmatch(name)
    return found[1] if found else name


def find_program(table: Mapping[str, _Value], name: str) -> _Value | None:
    """What a table says of a program or of the program of which it is a version."""
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
