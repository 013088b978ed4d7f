"""Which of the tools that change text a model is shown: the format it was trained on.

They share one engine and can do the same, so a model needs only one of them; the others can
still be called by name. This is the only place that knows which model gets which. The names come
from `edit_formats.json`, which `corpus/table.py` writes; every entry says why it is there.
"""

from collections.abc import Collection, Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import msgspec

from handaxe.config.settings import EditFormat, EditOptions

EDIT_TOOLS: dict[EditFormat, str] = {
    "replace": "Edit",
    "multi": "MultiEdit",
    "patch": "ApplyPatch",
    "lines": "EditLines",
}
"""The tool of each format."""

OTHERS: EditFormat = "replace"
"""For unknown models: the format that can express every edit."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The format for models whose names, without a vendor, fit a pattern.

    `openai/` alone says nothing: servers of every kind of model are spoken to that way.
    """

    pattern: str
    format: EditFormat
    source: str
    """Why: what was measured, or what the model's maker documents."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    written_by: str
    profiles: tuple[Profile, ...]


@cache
def load_profiles() -> tuple[Profile, ...]:
    """The built-in table; the first that fits counts."""
    # Read when a model is named, so that a session without one opens no file for it.
    data = Path(__file__).with_name("edit_formats.json").read_bytes()
    return msgspec.json.decode(data, type=_Table).profiles


def choose_edit_tool(options: EditOptions, model: str | None = None) -> str:
    """The tool to show, by the settings, or by the model's name where they leave it open."""
    if options.format != "auto":
        return EDIT_TOOLS[options.format]
    name = (model or "").casefold().rpartition("/")[2]
    return EDIT_TOOLS[_choose_format(name, options.formats) if name else OTHERS]


def add_edit_formats(names: Iterable[str]) -> frozenset[str]:
    """A selection of tools where Edit stands for changing text in whatever format."""
    chosen = frozenset(names)
    return chosen | frozenset(EDIT_TOOLS.values()) if "Edit" in chosen else chosen


def find_hidden_formats(offered: Collection[str], wanted: str) -> frozenset[str]:
    """Tools on offer that only do in another format what the one that is shown does."""
    formats = [name for name in EDIT_TOOLS.values() if name in offered]
    shown = wanted if wanted in formats else next(iter(formats), None)
    return frozenset(formats) - {shown}


def _choose_format(name: str, own: Mapping[str, EditFormat]) -> EditFormat:
    for pattern, form in own.items():
        if fnmatchcase(name, pattern.casefold()):
            return form
    for known in load_profiles():
        if fnmatchcase(name, known.pattern):
            return known.format
    return OTHERS
