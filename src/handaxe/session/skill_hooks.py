"""Hooks that come with a skill: in force from its first use to the end of the session."""

from collections.abc import Callable

from handaxe.contract.ports.skills import SkillInfo


class SkillHooks:
    """Passes the hooks of skills on to whoever runs them."""

    def __init__(self, hear: Callable[[SkillInfo], str | None]) -> None:
        """`hear` takes them over, or says why not."""
        self._hear = hear

    def enter(self, skill: SkillInfo) -> str | None:
        """Put a skill's hooks in force; why they are not, if so."""
        return self._hear(skill) if skill.hooks else None
