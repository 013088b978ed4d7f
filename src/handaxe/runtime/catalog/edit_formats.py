"""Which of the tools that change text a model is shown: the format it was trained on.

They stand on one engine and may do the same, so a model needs only one of them; the others can
still be called by name. This is the only place that knows which model gets which.
"""

from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from typing import Literal

EditFormat = Literal["auto", "replace", "multi", "patch"]

EDIT_TOOLS: dict[str, str] = {"replace": "Edit", "multi": "MultiEdit", "patch": "ApplyPatch"}
"""The tool of each format."""

PROFILES: tuple[tuple[str, str], ...] = (
    ("chatgpt-*", "patch"),
    ("codex*", "patch"),
    ("gpt-*", "patch"),
    ("o[1-9]", "patch"),
    ("o[1-9]-*", "patch"),
    ("*", "replace"),
)
"""The format for models by their names without a vendor; the first that fits counts.

`openai/` alone says nothing: servers of every kind of model are spoken to that way.
"""


def edit_tool(setting: EditFormat, model: str | None = None) -> str:
    """The tool to show, by the setting, or by the model's name where that is `auto`."""
    if setting != "auto":
        return EDIT_TOOLS[setting]
    name = (model or "").casefold().rpartition("/")[2]
    return next(EDIT_TOOLS[form] for pattern, form in PROFILES if fnmatchcase(name, pattern))


def with_formats(names: Iterable[str]) -> frozenset[str]:
    """A selection of tools where Edit stands for changing text in whatever format."""
    chosen = frozenset(names)
    return chosen | frozenset(EDIT_TOOLS.values()) if "Edit" in chosen else chosen


def unshown(offered: Collection[str], wanted: str) -> frozenset[str]:
    """Tools on offer that only do in another format what the one that is shown does."""
    formats = [name for name in EDIT_TOOLS.values() if name in offered]
    shown = wanted if wanted in formats else next(iter(formats), None)
    return frozenset(formats) - {shown}
