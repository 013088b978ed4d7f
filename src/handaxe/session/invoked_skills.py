"""Which skill texts the conversation holds, so that the same one does not enter twice."""

from collections.abc import Callable, Iterable

from handaxe.contract.events import SkillInvoked


class InvokedSkills:
    """The newest text of each skill that was run."""

    def __init__(self, announce: Callable[[SkillInvoked], None] = lambda _: None) -> None:
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
