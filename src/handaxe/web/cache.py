"""Pages that were fetched a short while ago."""

import time
from collections import OrderedDict

import msgspec

from handaxe.contract.ports.web import FetchedPage, NearAddress

MAX_PAGES = 64
MAX_BYTES = 32 << 20


class CachedPage(msgspec.Struct, frozen=True):
    """A page, and the addresses near by that it came from."""

    page: FetchedPage
    near: tuple[NearAddress, ...]
    fetched_at: float


class PageCache:
    """The newest pages by their addresses, within a time and a size."""

    def __init__(self) -> None:
        self._pages: OrderedDict[str, CachedPage] = OrderedDict()
        self._size_bytes = 0

    def find(self, url: str, max_age_s: float) -> CachedPage | None:
        """The page of this address, if it is young enough."""
        found = self._pages.get(url)
        if found is None or time.monotonic() - found.fetched_at >= max_age_s:
            return None
        return found

    def put(self, url: str, page: FetchedPage, near: tuple[NearAddress, ...]) -> None:
        """Keep a page, and drop the oldest ones where there is too much."""
        self._drop(url)
        self._pages[url] = CachedPage(page, near, time.monotonic())
        self._size_bytes += len(page.body)
        while self._size_bytes > MAX_BYTES or len(self._pages) > MAX_PAGES:
            self._drop(next(iter(self._pages)))

    def _drop(self, url: str) -> None:
        dropped = self._pages.pop(url, None)
        if dropped is not None:
            self._size_bytes -= len(dropped.page.body)
