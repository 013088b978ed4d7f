"""Fetch pages and search the web. The addresses were checked before."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal

import msgspec


class WebAddress(msgspec.Struct, frozen=True, kw_only=True):
    """An address in the one form that rules are compared with and connections are made from."""

    url: str
    """Without credentials and fragment."""
    scheme: Literal["http", "https"]
    host: str
    """In lower case; an IPv6 address is in brackets."""
    port: int
    target: str
    """Path and query, as a request names them."""
    credentials: str = ""
    """`user:password`, if the address had them."""

    @property
    def origin(self) -> tuple[str, str, int]:
        """The purpose of credentials."""
        return self.scheme, self.host, self.port


class NearAddress(msgspec.Struct, frozen=True):
    """An address of this machine or of the user's network that a name leads to."""

    address: str
    """As rules for domains spell it: an IPv6 address is in brackets."""
    name: str
    """The host of the page."""


class FetchedPage(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a server."""

    url: str
    """Where the answer came from, after redirects."""
    status: int
    reason: str
    media_type: str
    charset: str
    body: bytes
    redirected_to: str = ""
    """Another host that the server leads to, which was not followed."""
    address: str = ""
    """The checked address that it came from; empty if a proxy looked the host up."""
    proxy: str = ""
    """The proxy that the request went through."""
    is_cached: bool = False
    notes: tuple[str, ...] = ()


class PageText(msgspec.Struct, frozen=True, kw_only=True):
    """A page as Markdown."""

    title: str
    text: str
    outline: tuple[tuple[int, int, str], ...] = ()
    """Line, level and text of each heading."""


class SearchHit(msgspec.Struct, frozen=True, kw_only=True):
    """One page that a search found."""

    title: str
    url: str
    snippet: str = ""
    date: str = ""
    """When it was published, as the back end says."""


class Web(ABC):
    """Pages of the web."""

    @abstractmethod
    def find_near(self, address: WebAddress) -> tuple[NearAddress, ...]:
        """Addresses near by that this machine itself knows for a name, without a look-up."""

    @abstractmethod
    async def resolve(self, call_id: str, address: WebAddress) -> tuple[NearAddress, ...]:
        """Look up the host for a call and return the local addresses that it leads to.

        Raises:
            ToolFault: `web.dns`, `web.policy`.
        """

    @abstractmethod
    async def fetch(self, call_id: str, address: WebAddress) -> FetchedPage:
        """Get a page from the addresses that were looked up for the call.

        Raises:
            ToolFault: `web.policy`, `web.egress`, `web.too_large`, `web.type`, `web.timeout`.
        """

    @abstractmethod
    async def convert(self, page: FetchedPage) -> PageText | None:
        """The page as Markdown; None if it is not text."""

    @abstractmethod
    async def draw(self, page: FetchedPage) -> bytes | None:
        """A picture of the page as PNG; None where the setting is off or no browser is found."""


class WebSearcher(ABC):
    """A back end of WebSearch."""

    @abstractmethod
    async def search(
        self, query: str, allowed: Sequence[str], blocked: Sequence[str]
    ) -> list[SearchHit]:
        """The pages that were found, the best first.

        Raises:
            ToolFault: `web.search_failed`, `web.timeout`, `web.dns`, `web.egress`.
        """

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the backend in results."""
