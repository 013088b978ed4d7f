"""The story as data: the project's files, and chapters with the turns of a scripted model."""

import tomllib
from pathlib import Path
from typing import Any

import msgspec

from handaxe.models.scripted import ScriptedModel, parse_script


class TourFileChange(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What somebody else changes in a file."""

    file: str
    old: str
    new: str


class TourChapter(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One prompt, and how the calls that follow have to end."""

    title: str
    says: tuple[str, ...]
    prompt: str
    turn: tuple[dict[str, Any], ...]
    ends: tuple[str, ...]
    """Per call of the main agent: `ok`, or the code of its failure."""
    answers: tuple[str, ...] = ()
    """What is typed at the questions, in their order."""
    somebody_changes: TourFileChange | None = None
    is_timed: bool = False
    """Whether to tell how long the calls took, together and each."""
    undoes: bool = False
    """Whether the last change is put back at the end."""


class TourStory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of it."""

    mode: str
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    agents: dict[str, Any]
    files: dict[str, str]
    chapter: tuple[TourChapter, ...]

    def model(self) -> ScriptedModel:
        """The model that plays its part."""
        turns = [turn for chapter in self.chapter for turn in chapter.turn]
        script = {"turn": turns, "agents": self.agents, "name": "scripted"}
        return ScriptedModel(parse_script(script, "story.toml"))


def load_story() -> TourStory:
    """The story that is told."""
    text = Path(__file__).with_name("story.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text), TourStory)
