"""A sub-agent's permissions: its parent's rules, in a mode that is never wider."""

from collections.abc import Callable

from handaxe.runtime.permission.modes import narrowest
from handaxe.runtime.permission.policy import Policy
from handaxe.session.workdir import Workdir


class NarrowedPolicy:
    """The policy of an agent, following its parent's from moment to moment."""

    def __init__(
        self, parent: Callable[[], Policy], parents_place: Workdir, place: Workdir, mode: str | None
    ) -> None:
        self._parent = parent
        self._parents_place = parents_place
        self._place = place
        self._mode = mode
        self._known: tuple[Policy, object, Policy] | None = None

    def __call__(self) -> Policy:
        """The policy in force now."""
        above, place = self._parent(), self._place
        if place.roots != self._parents_place.roots:
            place.roots = self._parents_place.roots
        key = (place.roots, place.free_to_read)
        if self._known is None or self._known[0] is not above or self._known[1] != key:
            policy = Policy(
                above.book,
                mode=narrowest(above.mode, self._mode) or above.mode,
                roots=place.roots,
                free_to_read=place.free_to_read,
                matches_command=above.matches_command,
            )
            self._known = above, key, policy
        return self._known[2]
