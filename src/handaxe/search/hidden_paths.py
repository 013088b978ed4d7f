"""Paths that a search does not show.

A search behaves as if paths that a rule denies and the own files of handaxe did not exist. It skips
and counts files such as `.env`, unless Read may read them without a prompt or the search names the
file.
"""

import os
from collections.abc import Callable, Sequence

from handaxe.contract.ports.search import Hides
from handaxe.text.secrets import can_name_env_file, is_env_file


def _return_false(_: str) -> bool:
    return False


class ExclusionFilter:
    """The paths that one search leaves out."""

    def __init__(
        self,
        root: str,
        *,
        denies: Hides | None = None,
        may_read: Callable[[str], bool] | None = _return_false,
        own_places: Sequence[str] = (),
    ) -> None:
        """Plan which paths to leave out.

        Args:
            root: where the search begins.
            denies: says which paths must not appear.
            may_read: says whether a file such as `.env` may be read unasked; None for all of them.
            own_places: data and settings of handaxe, which are left out of a search from above.
        """
        self._denies = denies
        self._may_read = may_read
        self._root = root.rstrip("/") + "/"
        own = tuple(place for place in own_places if place.startswith(self._root))
        self.left_out: tuple[str, ...] = tuple(place[len(self._root) :] for place in own)
        """Places below the root that are not entered, relative to it."""
        self.hides: Hides | None = denies
        """Says which absolute paths the search hides; None if it hides none."""
        if own:
            inside = tuple(f"{place}/" for place in own)
            self.hides = lambda path: (
                path in own or path.startswith(inside) or bool(denies and denies(path))
            )

    @property
    def has_rules(self) -> bool:
        """Whether rules deny paths."""
        return self._denies is not None

    def is_withheld(self, path: str) -> bool:
        """Whether the file at an absolute path is left out because it may hold secrets."""
        if self._may_read is None or not is_env_file(path.rpartition("/")[2]):
            return False
        return not self._may_read(path)

    def is_held_back(self, path: bytes) -> bool:
        """Whether a path, relative to the root, must not appear in an answer."""
        if self.hides is None and (self._may_read is None or not can_name_env_file(path)):
            return False
        absolute = self._root + os.fsdecode(path)
        hides = self.hides
        return (hides is not None and hides(absolute)) or self.is_withheld(absolute)
