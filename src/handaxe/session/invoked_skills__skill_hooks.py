"""Hooks that come with a skill: in force from its first use to the end of the session."""

from collections.abc import Callable

from handaxe.contract.ports.skills import SkillInfo


class SkillHooks:
    """Passes skills that are run on to whoever runs their hooks."""

    def __init__(self, hear: Callable[[SkillInfo], str | None]) -> None:
        """`hear` takes over the hooks of a skill that may have some, or says what is wrong."""
        self._hear = hear

    def enter(self, skill: SkillInfo) -> str | None:
        """Put a skill's hooks in force; what is wrong with them, if anything."""
        return None if skill.powers.is_empty else self._hear(skill)
