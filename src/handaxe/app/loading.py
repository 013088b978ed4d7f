"""Tools that wait to be loaded: which they are, and how the model hears of them."""

from handaxe.runtime.catalog.catalog import Catalog
from handaxe.runtime.catalog.deferral import Deferral, announcement
from handaxe.session.loaded_tools import LoadedTools
from handaxe.settings.model import Settings


def deferral_of(catalog: Catalog, loaded: LoadedTools, settings: Settings) -> Deferral:
    """Who waits, by the settings."""
    options = settings.tool_search
    return Deferral(catalog, loaded, when=options.when, limit_chars=options.limit_chars)


class Announcer:
    """Tells a model the names of tools it can load, and later only what changed.

    What waits at the start is in the system prompt; changes are said in the conversation, so that
    a server that comes or goes changes nothing that was sent before.
    """

    def __init__(self, deferral: Deferral) -> None:
        self._deferral = deferral
        self._told: frozenset[str] = frozenset()

    def first(self) -> str:
        """The names of all tools that wait now, for the system prompt; empty if none does."""
        self._deferral.sent()
        waiting = self._deferral.waiting()
        self._told = frozenset(waiting)
        return announcement(waiting) if waiting else ""

    def __call__(self) -> tuple[str, ...]:
        """What there is to tell now; mostly nothing."""
        waiting = self._deferral.waiting()
        new = [name for name in waiting if name not in self._told]
        known = {*waiting, *self._deferral.loaded}
        gone = sorted(name for name in self._told if name not in known)
        self._told = frozenset(waiting) | (self._told - set(gone))
        told: list[str] = []
        if new:
            told.append(announcement(new))
        if gone:
            told.append(f"These tools are gone for now: {', '.join(gone)}")
        return tuple(told)
