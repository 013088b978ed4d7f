"""Choose the editing tool for a model: the format it was trained on.

All editing tools share one engine and can do the same, so a model needs only one; the others can
still be called by name. `edit_formats.json`, written by `corpus/table.py`, maps models to formats
with the reason for each.
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
"""For unknown models: the most general format."""


class Profile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The format for models whose names, without a vendor, match a pattern.

    The vendor `openai/` says nothing, because servers of all models use it.
    """

    pattern: str
    format: EditFormat
    source: str
    """The reason: a measurement, or documentation of the model's vendor."""


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    written_by: str
    profiles: tuple[Profile, ...]


@cache
def load_profiles() -> tuple[Profile, ...]:
    """The built-in table; the first match applies."""
    # Read when a model is named, so that a session without one opens no file for it.
    data = Path(__file__).with_name("edit_formats.json").read_bytes()
    return msgspec.json.decode(data, type=_Table).profiles


def choose_edit_tool(options: EditOptions, model: str | None = None) -> str:
    """The tool to show, by the settings, or else by the model's name."""
    if options.format != "auto":
        return EDIT_TOOLS[options.format]
    name = (model or "").casefold().rpartition("/")[2]
    return EDIT_TOOLS[_choose_format(name, options.formats) if name else OTHERS]


def add_edit_formats(names: Iterable[str]) -> frozenset[str]:
    """A selection of tools in which Edit stands for all editing tools."""
    chosen = frozenset(names)
    return chosen | frozenset(EDIT_TOOLS.values()) if "Edit" in chosen else chosen


def find_hidden_formats(offered: Collection[str], wanted: str) -> frozenset[str]:
    """Offered tools that only repeat the shown one in another format."""
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
