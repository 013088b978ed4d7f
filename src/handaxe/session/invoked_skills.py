"""Which skill texts the conversation holds, so that the same one does not enter twice."""

from collections.abc import Callable, Iterable

from handaxe.contract.events import SkillInvoked
from handaxe.contract.ports.skills import SkillInfo


class InvokedSkills:
    """The newest text of each skill that was run."""

    def __init__(self, announce: Callable[[SkillInvoked], object] = lambda _: None) -> None:
        self._announce = announce
        self.texts: dict[str, str] = {}
        """By name, the last invoked last; what compaction puts back."""

    def enter(self, name: str, text: str) -> bool:
        """Note that a skill's text enters; False if that very text is there already."""
        if self.texts.get(name) == text:
            return False
        event = SkillInvoked(name=name, text=text)
        self.replay((event,))
        self._announce(event)
        return True

    def replay(self, events: Iterable[SkillInvoked]) -> None:
        """Take over what an earlier run of the session had announced."""
        for event in events:
            self.texts.pop(event.name, None)
            self.texts[event.name] = event.text


class SkillHooks:
    """Passes started skills on to the runner of their hooks."""

    def __init__(self, hear: Callable[[SkillInfo], str | None]) -> None:
        """`hear` takes over the hooks of a skill that may have some, or says what is wrong."""
        self._hear = hear

    def enter(self, skill: SkillInfo) -> str | None:
        """Put a skill's hooks in force and return the problems, if any."""
        return None if skill.powers.is_empty else self._hear(skill)
