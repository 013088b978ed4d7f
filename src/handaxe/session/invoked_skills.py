"""Which skill texts the conversation holds, so that the same one does not enter twice."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from handaxe.contract.events import SkillInvoked


class InvokedSkills:
    """The newest text of each skill that was run."""

    def __init__(
        self,
        announce: Callable[[SkillInvoked], None] = lambda _: None,
        adopt: Callable[[Mapping[str, Any], str], str] = lambda _hooks, _source: "",
    ) -> None:
        """`adopt` puts a skill's hooks in force; it says why it does not, or nothing."""
        self._announce = announce
        self._adopt = adopt
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

    def adopt(self, hooks: Mapping[str, Any], source: str) -> str:
        """Have a skill's hooks run from now on; why they do not, or nothing."""
        return self._adopt(hooks, source) if hooks else ""

    def replay(self, events: Iterable[SkillInvoked]) -> None:
        """Take over what an earlier run of the session had announced."""
        for event in events:
            self.texts.pop(event.name, None)
            self.texts[event.name] = event.text
