"""Deferred tools: which they are, and how they are announced to the model."""

import os

from handaxe.catalog.catalog import Catalog
from handaxe.catalog.deferral import Deferral, format_deferred_tools
from handaxe.config.settings import Settings
from handaxe.session.loaded_tools import LoadedTools

VARIABLE = "ENABLE_TOOL_SEARCH"
"""How the ecosystem chooses: `true`, `false`, `auto`, or `auto:N` for N percent of a context."""
_CHARS_PER_PERCENT = 200_000 * 4 // 100


def build_deferral(catalog: Catalog, loaded: LoadedTools, settings: Settings) -> Deferral:
    """Who waits, by the variable where it is set, else by the settings."""
    options = settings.tool_search
    when, limit_chars = options.when, options.limit_chars
    said, _, percent = settings.env.get(VARIABLE, os.environ.get(VARIABLE, "")).partition(":")
    if said in {"true", "1"}:
        when = "always"
    elif said in {"false", "0"}:
        when = "never"
    elif said == "auto":
        when = "auto"
        if percent.isdecimal():
            limit_chars = int(percent) * _CHARS_PER_PERCENT
    return Deferral(catalog, loaded, when=when, limit_chars=limit_chars, is_native=options.native)


class DeferredToolAnnouncer:
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
        waiting = self._deferral.beside_sent
        self._told = frozenset(waiting)
        return format_deferred_tools(waiting) if waiting else ""

    def __call__(self) -> tuple[str, ...]:
        """What there is to tell beside the tools that were sent last; mostly nothing."""
        waiting = self._deferral.beside_sent
        new = [name for name in waiting if name not in self._told]
        known = {*waiting, *self._deferral.loaded}
        gone = sorted(name for name in self._told if name not in known)
        self._told = frozenset(waiting) | (self._told - set(gone))
        told: list[str] = []
        if new:
            told.append(format_deferred_tools(new))
        if gone:
            told.append(f"These tools are gone for now: {', '.join(gone)}")
        return tuple(told)
