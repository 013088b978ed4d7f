"""Search on this machine.

What does the work is imported with the first search, so that a session opens quickly.
"""

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from handaxe.contract.ports.search import Hides, NameQuery, NamesFound, Search, TextFound, TextQuery
from handaxe.disk.threads import start_in_thread
from handaxe.search.deadline import SearchDeadline

if TYPE_CHECKING:
    from handaxe.search.hidden_paths import ExclusionFilter
    from handaxe.search.rg.exclusion_probe import LoudTrees

T = TypeVar("T")

FINAL_WAIT_S = 0.15
"""How long to wait for a cancelled search, which ends soon after in any case."""


class LocalSearch(Search):
    """Searches with ripgrep."""

    def __init__(
        self,
        *,
        roots: Callable[[], Sequence[str]] = tuple,
        hidden: Callable[[], Hides | None] = lambda: None,
        may_read: Callable[[], Callable[[str], bool]] = lambda: lambda _: False,
        own_places: Sequence[str] = (),
    ) -> None:
        """Plan searches.

        Args:
            roots: where no program is run from.
            hidden: gives what must not appear now.
            may_read: gives which files such as `.env` may be read now without a question.
            own_places: data and settings of handaxe, which no search from above shows.
        """
        self._roots = roots
        self._hidden = hidden
        self._may_read = may_read
        self._own_places = own_places
        self._loud: LoudTrees = set()

    async def find_names(self, query: NameQuery) -> NamesFound:
        """The files whose path fits a pattern."""
        from handaxe.search.hidden_paths import ExclusionFilter
        from handaxe.search.rg.name_search import NameSearch
        from handaxe.search.rg.rg_binary import require_ripgrep

        watch, own, denies = SearchDeadline(query.timeout_s), self._own_places, self._hidden()

        def make_screen(root: str) -> ExclusionFilter:
            return ExclusionFilter(root, denies=denies, may_read=None, own_places=own)

        def search() -> NamesFound:
            program = require_ripgrep(self._roots())
            return NameSearch(program, query, watch, make_screen, self._loud).search()

        return await _run_in_thread(search, watch)

    async def find_text(self, query: TextQuery) -> TextFound:
        """The lines or files that hold a match."""
        from handaxe.search.rg_arguments import check_arguments

        check_arguments(query)
        screen = self._screen(query.root, is_file=query.is_file)
        watch = SearchDeadline(query.timeout_s)
        return await _run_in_thread(lambda: self._find_text(query, watch, screen), watch)

    def list_file_types(self) -> dict[str, tuple[str, ...]]:
        """The known names of file types, with their patterns."""
        from handaxe.search.walk.ignore_files import load_file_types

        return load_file_types()

    def _screen(self, root: str, *, is_file: bool = False) -> "ExclusionFilter":
        from handaxe.search.hidden_paths import ExclusionFilter

        denies = self._hidden()
        if is_file:
            # Permission was given for this very file.
            return ExclusionFilter(os.path.split(root)[0], denies=denies, may_read=None)
        own, may_read = self._own_places, self._may_read()
        return ExclusionFilter(root, denies=denies, may_read=may_read, own_places=own)

    def _find_text(
        self, query: TextQuery, watch: SearchDeadline, screen: "ExclusionFilter"
    ) -> TextFound:
        from handaxe.search.rg.rg_binary import require_ripgrep
        from handaxe.search.rg.ripgrep import Ripgrep
        from handaxe.search.walk.root import SearchPlace

        program = require_ripgrep(self._roots())
        with SearchPlace(
            query.root, is_file=query.is_file, respect_ignore=query.respect_ignore
        ) as place:
            return Ripgrep(program, query, place, watch, screen, self._loud).answer()


async def _run_in_thread(work: Callable[[], T], watch: SearchDeadline) -> T:
    job = start_in_thread(work)
    try:
        return await job.result
    except asyncio.CancelledError:
        watch.cancel()
        # After the cancellation nothing of the search may be left.
        await job.wait(FINAL_WAIT_S)
        raise
