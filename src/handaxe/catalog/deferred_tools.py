"""Build the deferral of a session, and announce deferred tools to the model."""

import os

from handaxe.catalog.catalog import Catalog
from handaxe.catalog.deferral import Deferral, format_deferred_tools
from handaxe.config.settings import Settings
from handaxe.session.loaded_tools import LoadedTools

VARIABLE = "ENABLE_TOOL_SEARCH"
"""The ecosystem's variable: `true`, `false`, `auto`, or `auto:N` for N percent of a context."""
_CHARS_PER_PERCENT = 200_000 * 4 // 100


def build_deferral(catalog: Catalog, loaded: LoadedTools, settings: Settings) -> Deferral:
    """The deferral, by the variable if it is set, otherwise by the settings."""
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
    """Announces deferred tools to a model, and later only changes.

    The initial names are in the system prompt; changes are messages, so that earlier content stays
    unchanged.
    """

    def __init__(self, deferral: Deferral) -> None:
        self._deferral = deferral
        self._told: frozenset[str] = frozenset()

    def first(self) -> str:
        """All deferred names for the system prompt; empty if there are none."""
        self._deferral.sent()
        waiting = self._deferral.beside_sent
        self._told = frozenset(waiting)
        return format_deferred_tools(waiting) if waiting else ""

    def __call__(self) -> tuple[str, ...]:
        """Changes since the last request; mostly empty."""
        waiting = self._deferral.beside_sent
        new = [name for name in waiting if name not in self._told]
        known = {*waiting, *self._deferral.loaded}
        gone = sorted(name for name in self._told if name not in known)
        self._told = frozenset(waiting) | (self._told - set(gone))
        told: list[str] = []
        if new:
            told.append(format_deferred_tools(new))
        if gone:
            told.append(f"These tools are currently unavailable: {', '.join(gone)}")
        return tuple(told)
