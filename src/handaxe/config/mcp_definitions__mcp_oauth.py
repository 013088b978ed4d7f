"""What an entry says about logging in: the table `oauth` of a server at an address."""

import re

import msgspec

# RFC 6749, 3.3: no blanks, quotes, backslashes or control characters.
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


class OAuthConfig(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How to log in where a server's own words do not suffice."""

    client_id: str | None = None
    """A client that was registered by hand, or the address of a client's metadata document."""
    callback_port: int | None = None
    auth_server_metadata_url: str | None = None
    scopes: str | tuple[str, ...] = ()

    @property
    def scope(self) -> str | None:
        """The scopes to ask for, as the protocol writes them; None if the server is to say."""
        words = self.scopes.split() if isinstance(self.scopes, str) else self.scopes
        return " ".join(words) or None


def check_oauth(oauth: OAuthConfig) -> None:
    """Refuse what cannot work, with `ValueError`."""
    port = oauth.callback_port
    if port is not None and not 0 < port < 65_536:
        raise ValueError(f"`oauth.callbackPort` must be a port, not {port}")
    if oauth.client_id == "":
        raise ValueError("`oauth.clientId` is empty")
    address = oauth.auth_server_metadata_url
    if address is not None and not re.match(r"https?://[^/]", address):
        raise ValueError(
            f"`oauth.authServerMetadataUrl` must be an http or https address, not {address!r}"
        )
    for word in (oauth.scope or "").split(" "):
        if word and not _SCOPE.fullmatch(word):
            raise ValueError(f"`oauth.scopes` holds {word!r}, which is no scope")
