"""Which of the tools that change text a model is shown: the format it was trained on.

They stand on one engine and may do the same, so a model needs only one of them; the others can
still be called by name. This is the only place that knows which model gets which.
"""

import re
from collections.abc import Collection, Iterable
from typing import Literal

EditFormat = Literal["auto", "replace", "multi", "patch"]

EDIT_TOOLS: dict[str, str] = {"replace": "Edit", "multi": "MultiEdit", "patch": "ApplyPatch"}
"""The tool of each format."""

# OpenAI's models by their own names. `openai/NAME` alone says nothing: any server speaks that.
_TRAINED_ON_PATCHES = re.compile(r"(?:.*/)?(?:chatgpt-|codex|gpt-|o[1-9](?:-|$))")


def edit_tool(setting: EditFormat, model: str | None = None) -> str:
    """The tool to show, by the setting, or by the model's name where that is `auto`."""
    if setting == "auto":
        is_patching = model is not None and _TRAINED_ON_PATCHES.match(model.casefold())
        setting = "patch" if is_patching else "replace"
    return EDIT_TOOLS[setting]


def with_formats(names: Iterable[str]) -> frozenset[str]:
    """A selection of tools where Edit stands for changing text in whatever format."""
    chosen = frozenset(names)
    return chosen | frozenset(EDIT_TOOLS.values()) if "Edit" in chosen else chosen


def unshown(offered: Collection[str], wanted: str) -> frozenset[str]:
    """Tools on offer that only do in another format what the one that is shown does."""
    formats = [name for name in EDIT_TOOLS.values() if name in offered]
    shown = wanted if wanted in formats else next(iter(formats), None)
    return frozenset(formats) - {shown}
