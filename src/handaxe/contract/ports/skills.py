"""Skills and commands: texts people wrote down for a model, found by name."""

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Any

import msgspec

from handaxe.contract.trust_gate import TrustRequest


class SkillCapabilities(msgspec.Struct, frozen=True, kw_only=True):
    """The capabilities of a skill besides its text."""

    allowed_tools: tuple[str, ...] = ()
    """Rules that hold for the turn that runs it."""
    hooks: dict[str, Any] = {}
    """Hooks that are active once the skill has run, in the form of the settings."""
    commands: tuple[str, ...] = ()
    """Commands whose output becomes a part of its text."""


NO_POWERS = SkillCapabilities()


class SkillInfo(msgspec.Struct, frozen=True, kw_only=True):
    """The facts about a skill without its text."""

    name: str
    description: str
    when_to_use: str = ""
    argument_hint: str = ""
    arguments: tuple[str, ...] = ()
    """Names of its arguments, in order."""
    powers: TrustRequest[SkillCapabilities] = TrustRequest(NO_POWERS, NO_POWERS, key="")
    """The granted capabilities of the skill besides its text."""
    disallowed_tools: tuple[str, ...] = ()
    """Rules for what that turn may not do."""
    model: str | None = None
    """Who answers for the rest of that turn."""
    effort: str | None = None
    in_background: bool = False
    """Whether it runs in the background as an agent of its own."""
    for_model: bool = True
    for_user: bool = True
    forks: bool = False
    """Whether it runs as an agent of its own, and of which type."""
    agent_type: str = ""
    is_due: bool = True
    """Whether a file was touched that it is for; until then a model is not told of it."""
    variants: tuple[str, ...] = ()
    """Skills of the same name for parts of the project, by their full names."""
    directory: str = ""
    path: str = ""


class Skills(ABC):
    """The skills of a session, read again whenever their files change."""

    @abstractmethod
    def all(self) -> tuple[SkillInfo, ...]:
        """Every skill by name."""

    @abstractmethod
    def body(self, skill: SkillInfo) -> str:
        """The whole text of a skill, without its head; a fault if it cannot be read now."""

    @abstractmethod
    def problems(self) -> tuple[str, ...]:
        """Files that were skipped, one sentence each."""

    @abstractmethod
    def news(self) -> tuple[str, ...]:
        """Files that came, changed or went since the last look, and do not count yet.

        The first look finds none; who never looks gets every change at once.
        """

    @abstractmethod
    def settle(self, refused: Collection[str]) -> None:
        """Let the news count, but for files whose change was refused."""
