"""The pages of the web that a session used, and how often it searched; shared by all its agents."""

from collections.abc import Callable, Iterable

from handaxe.contract.events import SourcesFound, WebSource


class WebSources:
    """Pages by address, in the order in which they were first used."""

    def __init__(self, announce: Callable[[SourcesFound], object] = lambda _: None) -> None:
        self._pages: dict[str, WebSource] = {}
        self._announce = announce
        self.searches = 0
        """How many searches this process made for the session."""

    @property
    def pages(self) -> tuple[WebSource, ...]:
        """The pages, the first used first."""
        return tuple(self._pages.values())

    def add(self, *sources: WebSource) -> None:
        """Keep these; a page counts once, as read if it was read and found."""
        new = tuple(
            source
            for source in sources
            if (known := self._pages.get(source.url)) is None
            or (known.tool == "WebSearch" and source.tool == "WebFetch")
        )
        if new:
            self.replay(new)
            self._announce(SourcesFound(sources=new))

    def replay(self, sources: Iterable[WebSource]) -> None:
        """Take over what an earlier run of the session had announced."""
        self._pages.update((source.url, source) for source in sources)
