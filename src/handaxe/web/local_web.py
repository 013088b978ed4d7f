"""The `Web` port on this machine: what was looked up and checked is what is connected to."""

import asyncio
import os
from base64 import b64encode
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from handaxe.config.settings import WebOptions
from handaxe.contract.faults import SetupError
from handaxe.contract.faults.web import NoConnection, NoSuchHost, RefusedAddress, WebTimeout
from handaxe.contract.ports.web import FetchedPage, NearAddress, PageText, Web, WebAddress
from handaxe.net.proxy import find_proxy
from handaxe.net.resolver import (
    Lookup,
    NoAddressError,
    find_listed_addresses,
    is_localhost,
    look_up,
)
from handaxe.text.framing import quote_line
from handaxe.text.ip_addresses import classify_address, read_address
from handaxe.version import __version__
from handaxe.web.address import convert_to_https, parse_address
from handaxe.web.cache import CachedPage, PageCache

if TYPE_CHECKING:
    from ssl import SSLContext

    import httpx2

MAX_REDIRECTS = 10
_MAX_PINS = 64
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_METADATA_NAMES = frozenset(
    {
        "metadata",
        "metadata.google.internal",
        "metadata.goog",
        "instance-data",
        "instance-data.ec2.internal",
    }
)
_ACCEPT = "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.5"


class PinnedHost(msgspec.Struct, frozen=True, kw_only=True):
    """Where a call may connect to."""

    addresses: tuple[str, ...]
    near: tuple[NearAddress, ...] = ()
    proxy: str | None = None
    """The proxy that looks the name up instead."""

    @property
    def is_near(self) -> bool:
        """Whether it is this machine or the user's network."""
        return any(classify_address(one) != "public" for one in self.addresses)


class LocalWeb(Web):
    """Pages of the web, for one session and all its agents."""

    def __init__(
        self,
        options: Callable[[], WebOptions],
        denied_domains: Callable[[], Sequence[str]] = lambda: (),
        *,
        env: Mapping[str, str] = os.environ,
        lookup: Lookup = look_up,
    ) -> None:
        """`denied_domains` are those of deny rules, for what a drawn page loads."""
        self._options = options
        self._denied_domains = denied_domains
        self._env = env
        self._lookup = lookup
        self._pins: OrderedDict[str, PinnedHost] = OrderedDict()
        self._cache = PageCache()
        self._tls: SSLContext | None = None

    def find_near(self, address: WebAddress) -> tuple[NearAddress, ...]:
        """The addresses in the hosts file, unless the host itself is an address or `localhost`."""
        refuse_unsafe_host(address)
        if _is_plain_place(address.host):
            return ()
        listed = find_listed_addresses(address.host)
        return _list_near(
            address.host, [one for one in listed if classify_address(one) != "public"]
        )

    async def resolve(self, call_id: str, address: WebAddress) -> tuple[NearAddress, ...]:
        """Look up the host for a call and return the local addresses that it leads to."""
        cached = self._find_cached(address)
        if cached is not None:
            return cached.near
        pinned = await self._pin(address)
        self._pins[call_id] = pinned
        while len(self._pins) > _MAX_PINS:
            self._pins.popitem(last=False)
        return pinned.near

    async def fetch(self, call_id: str, address: WebAddress) -> FetchedPage:
        """Get a page from the addresses that were looked up for the call."""
        if (cached := self._find_cached(address)) is not None:
            return msgspec.structs.replace(cached.page, is_cached=True)
        pinned = self._pins.pop(call_id, None)
        if pinned is None:
            pinned = await self._pin(address)
            if pinned.near:
                place = pinned.near[0].address
                raise RefusedAddress(
                    f"{address.host} leads to {place}, which was not allowed for this call.",
                    host=address.host,
                    address=place,
                )
        limit_s = self._options().timeout_s
        try:
            async with asyncio.timeout(limit_s):
                page = await self._follow(address, pinned)
        except TimeoutError:
            raise WebTimeout(address.url, limit_s) from None
        if page.status == 200 and not page.redirected_to and not address.credentials:
            self._cache.put(address.url, page, pinned.near)
        return page

    async def convert(self, page: FetchedPage) -> PageText | None:
        """The page as Markdown; None if it is not text."""
        from handaxe.web.markdown import convert_page

        return await convert_page(page)

    async def draw(self, page: FetchedPage) -> bytes | None:
        """A picture of the page; None where the setting is off or no browser is found."""
        if not self._options().screenshot:
            return None
        from handaxe.web.screenshot import draw_page

        return await draw_page(page, self._options().timeout_s, self._denied_domains())

    def _find_cached(self, address: WebAddress) -> CachedPage | None:
        return (
            None if address.credentials else self._cache.find(address.url, self._options().cache_s)
        )

    async def _pin(self, address: WebAddress) -> PinnedHost:
        refuse_unsafe_host(address)
        host = address.host
        proxy = find_proxy(address.scheme, host, address.port, self._env)
        if proxy is not None and not is_localhost(host):
            return PinnedHost(addresses=(), proxy=proxy)
        try:
            found = await self._lookup(host)
        except NoAddressError as error:
            raise NoSuchHost(host, str(error)) from None
        if unsafe := [one for one in found if classify_address(one) == "unsafe"]:
            raise RefusedAddress(_explain_unsafe(host, unsafe[0]), host=host, address=unsafe[0])
        if not found:
            raise NoSuchHost(host, "the name is there, without an address")
        public = [one for one in found if classify_address(one) == "public"]
        if public:
            return PinnedHost(addresses=tuple(public))
        near = () if _is_plain_place(host) else _list_near(host, found)
        return PinnedHost(addresses=tuple(found), near=near)

    async def _follow(self, address: WebAddress, pinned: PinnedHost) -> FetchedPage:
        """The page, also if its own host has moved it."""
        is_open = classify_address(address.host.strip("[]")) in ("public", "unsafe")
        upgrades = is_open and (pinned.proxy is not None or not pinned.is_near)
        notes: tuple[str, ...] = ()
        origin = (convert_to_https(address) if upgrades else address).origin
        for _ in range(MAX_REDIRECTS + 1):
            if upgrades and address.scheme == "http":
                address = convert_to_https(address)
                notes = ("The address was changed from http to https.",)
            page = await self._request(address, pinned, is_own_origin=address.origin == origin)
            if not page.redirected_to:
                return msgspec.structs.replace(page, notes=notes)
            target = parse_address(page.redirected_to, page.url)
            refuse_unsafe_host(target)
            if target.host != address.host:
                return msgspec.structs.replace(page, redirected_to=target.url, notes=notes)
            address = msgspec.structs.replace(target, credentials=address.credentials)
        raise NoConnection(address.host, f"it redirects more than {MAX_REDIRECTS} times")

    async def _request(
        self, address: WebAddress, pinned: PinnedHost, *, is_own_origin: bool
    ) -> FetchedPage:
        """One request and its answer; `redirected_to` is what the server says, unread."""
        from handaxe.net.pinned_http import NotConnectedError, send_pinned
        from handaxe.web.body import ACCEPTED_ENCODINGS

        headers = {
            "user-agent": f"handaxe/{__version__}",
            "accept": _ACCEPT,
            "accept-encoding": ACCEPTED_ENCODINGS,
            "connection": "close",
        }
        if address.credentials and is_own_origin:
            encoded = b64encode(address.credentials.encode()).decode("ascii")
            headers["authorization"] = f"Basic {encoded}"
        options = self._options()
        try:
            async with send_pinned(
                address,
                pinned.addresses,
                headers=headers,
                proxy=pinned.proxy,
                tls=self._get_tls(),
                timeout_s=options.timeout_s,
            ) as response:
                return await self._read(response, address, pinned.proxy, options.max_bytes)
        except (NotConnectedError, SetupError) as error:
            raise NoConnection(
                address.host, str(error), proxy=_hide_password(pinned.proxy)
            ) from None

    async def _read(
        self, response: "httpx2.Response", address: WebAddress, proxy: str | None, limit_bytes: int
    ) -> FetchedPage:
        from handaxe.web.body import detect_media_type, read_body, split_content_type
        from handaxe.web.markdown import clean_line

        headers = response.headers
        location = headers.get("location", "")
        is_redirect = response.status_code in _REDIRECTS and bool(location)
        body = b""
        if not is_redirect:
            encoding = headers.get("content-encoding", "")
            body = await read_body(address.url, encoding, response.aiter_raw(), limit_bytes)
        media_type, charset = split_content_type(headers.get("content-type", ""))
        is_challenge = "challenge" in headers.get("cf-mitigated", "")
        return FetchedPage(
            url=address.url,
            status=response.status_code,
            reason="challenge"
            if is_challenge
            else quote_line(clean_line(response.reason_phrase, 100)),
            media_type=detect_media_type(media_type, body),
            charset=charset,
            body=body,
            redirected_to=location if is_redirect else "",
            address="" if proxy else response.request.url.host,
            proxy=_hide_password(proxy),
        )

    def _get_tls(self) -> "SSLContext":
        if self._tls is None:
            from handaxe.net.tls import create_tls_context

            self._tls = create_tls_context(self._env)
        return self._tls


def refuse_unsafe_host(address: WebAddress) -> None:
    """Raise a fault if the host is by its own name one that nothing may connect to."""
    bare = address.host.strip("[]")
    is_unsafe = read_address(bare) is not None and classify_address(bare) == "unsafe"
    if is_unsafe or address.host in _METADATA_NAMES:
        raise RefusedAddress(
            _explain_unsafe(address.host, bare),
            host=address.host,
            address=bare if is_unsafe else "",
        )


def _explain_unsafe(host: str, address: str) -> str:
    place = host if host.strip("[]") == address else f"{host} leads to {address}. That"
    return (
        f"{place} is a link-local, metadata or group address. Nothing may connect to it, and no "
        "rule can allow it."
    )


def _is_plain_place(host: str) -> bool:
    """Whether the host of an address tells already where it leads."""
    return is_localhost(host) or read_address(host.strip("[]")) is not None


def _list_near(name: str, addresses: list[str]) -> tuple[NearAddress, ...]:
    spelled = [f"[{one}]" if ":" in one else one for one in addresses]
    return tuple(NearAddress(one, name) for one in spelled)


def _hide_password(proxy: str | None) -> str:
    """A proxy's address without the name and password in it."""
    if proxy is None:
        return ""
    scheme, mark, rest = proxy.partition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"
