"""Deferred tools whose schemas the model has: in the order they came, so that nothing moves."""

from collections.abc import Callable, Iterable

from handaxe.contract.events import ToolsLoaded


class LoadedTools:
    """The tools that ToolSearch, or a call made too early, has shown to the model."""

    def __init__(self, announce: Callable[[ToolsLoaded], object] = lambda _: None) -> None:
        self._names: dict[str, None] = {}
        self._announce = announce

    @property
    def names(self) -> tuple[str, ...]:
        """The loaded tools, the first loaded first."""
        return tuple(self._names)

    def __contains__(self, name: object) -> bool:
        return name in self._names

    def load(self, names: Iterable[str]) -> tuple[str, ...]:
        """Mark tools as loaded and return those that were not."""
        new = tuple(dict.fromkeys(name for name in names if name not in self._names))
        if new:
            self.replay(new)
            self._announce(ToolsLoaded(names=new))
        return new

    def replay(self, names: Iterable[str]) -> None:
        """Take over what an earlier run of the session had announced."""
        self._names.update(dict.fromkeys(names))
