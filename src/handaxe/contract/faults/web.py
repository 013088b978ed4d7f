"""Why a page cannot be had, or a search fails; each cause has a code of its own."""

from handaxe.contract.faults import ToolFault


class BadAddress(ToolFault):
    """The text is not an address of the web."""

    code = "web.bad_address"

    def __init__(self, url: str, problem: str, *, redirected_from: str | None = None) -> None:
        super().__init__(
            f"{redirected_from} redirects to {url[:200]!r}, which cannot be fetched: {problem}. "
            "Use another source."
            if redirected_from
            else f"{url[:200]!r} is not a usable address: {problem}. Give a complete http:// or "
            "https:// address."
        )


class WebNotInstalled(ToolFault):
    """The libraries that read addresses and pages are not there."""

    code = "web.not_installed"

    def __init__(self) -> None:
        super().__init__(
            "Fetching pages needs an extra of handaxe that is not installed here. Ask the user to "
            "install it: pip install 'handaxe[web]'"
        )


class NoSuchHost(ToolFault):
    """The host name does not resolve to an address."""

    code = "web.dns"

    def __init__(self, host: str, problem: str) -> None:
        super().__init__(
            f"The host {host} has no address: {problem}. Check the spelling of the address.",
            data={"host": host},
        )


class RefusedAddress(ToolFault):
    """The host leads to a place that nothing may connect to, or settings close it."""

    code = "web.policy"

    def __init__(self, reason: str, *, host: str, address: str = "") -> None:
        super().__init__(reason, data={"host": host, "address": address})


class NoConnection(ToolFault):
    """The host name resolves, but no connection is possible."""

    code = "web.egress"

    def __init__(self, host: str, problem: str, *, proxy: str = "") -> None:
        through = f" through the proxy {proxy}" if proxy else ""
        super().__init__(
            f"{host} cannot be reached{through}: {problem}. The network of this machine may be "
            "closed, or the server is down.",
            data={"host": host, "proxy": proxy},
        )


class PageTooLarge(ToolFault):
    """The page is longer than one may be."""

    code = "web.too_large"

    def __init__(self, url: str, limit_bytes: int) -> None:
        super().__init__(
            f"{url} has more than {limit_bytes:,} bytes after decompression and was not read. "
            "Fetch a smaller page, or raise the setting web.max_bytes.",
            data={"limit": limit_bytes},
        )


class WrongType(ToolFault):
    """The content cannot be shown."""

    code = "web.type"

    def __init__(self, url: str, problem: str, path: str = "") -> None:
        saved = f" It was saved as {path}." if path else ""
        super().__init__(f"{url} {problem}.{saved}", data={"path": path})


class HttpError(ToolFault):
    """The server answered with an error."""

    code = "web.http_error"

    def __init__(self, url: str, status: int, reason: str, shown: str) -> None:
        said = f" It says:\n{shown}" if shown else ""
        super().__init__(
            f"{url} answered with HTTP status {status}{reason and f' {reason}'}.{said}",
            data={"status": status, "url": url},
        )


class Challenged(ToolFault):
    """The site wants proof that a person is there."""

    code = "web.challenge"

    def __init__(self, url: str, status: int) -> None:
        super().__init__(
            f"{url} answered with a check for browsers (HTTP status {status}) instead of the page. "
            "Use another source, or ask the user for the content.",
            data={"status": status, "url": url},
        )


class WebTimeout(ToolFault):
    """The page did not come in time."""

    code = "web.timeout"

    def __init__(self, what: str, limit_s: float) -> None:
        super().__init__(f"{what} did not answer completely within {limit_s:g} s. Try again later.")


class SearchFailed(ToolFault):
    """The back end of WebSearch gave no result."""

    code = "web.search_failed"

    def __init__(self, backend: str, problem: str) -> None:
        super().__init__(
            f"The search with {backend} failed: {problem}. `handaxe doctor` checks the set-up.",
            data={"backend": backend},
        )
