"""Apply a stored login to requests, and renew its tokens; never log in here.

The SDK's provider holds a lock while a request waits for its answer, forgets the token endpoint
when a process ends, and would start a login in the middle of a session. So it is used only for
logins (`oauth_login`), and requests use the stored tokens.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress

import httpx2
import msgspec
from mcp.client.auth.exceptions import OAuthTokenError
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import ValidationError

from handaxe.config.mcp_definitions import RemoteConfig, ServerDefinition
from handaxe.contract.ports.mcp_servers import McpLogin, McpLogins
from handaxe.mcp.header_helper import MAY_REPEAT
from handaxe.mcp.ssrf_guard import AddressNotAllowed, RestrictedTransport

LIMIT_S = 30.0
MAX_CHALLENGE_CHARS = 4096
SHORT_OF_SCOPE = "insufficient_scope"
_REFUSED = frozenset({400, 401, 403})


class TokenRefreshFailed(Exception):
    """The login is still valid, but could not be renewed now."""


class StoredTokenAuth(httpx2.Auth):
    """Adds the access token to requests, and renews it when it expired or is rejected."""

    def __init__(
        self,
        key: str,
        logins: McpLogins,
        config: RemoteConfig,
        refused: Callable[[httpx2.Response], None],
    ) -> None:
        self._config = config
        self._key = key
        self._logins = logins
        self._refused = refused
        self._renewing = asyncio.Lock()

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The request with a token, and once more with a newer one."""
        # Read every time, so that logins and logouts elsewhere apply.
        used = self._logins.read(self._key)
        if used is not None and _is_expired(used) and used.refresh_token:
            used = await self._get_newer(used)
        _add_token(request, used)
        request.extensions[MAY_REPEAT] = True
        response = yield request
        if response.status_code == 401 and used is not None and used.access_token:
            used = await self._get_newer(used)
            if used is not None:
                _add_token(request, used)
                response = yield request
        if response.status_code in {401, 403}:
            await self._note(response)
            self._refused(response)

    async def _get_newer(self, used: McpLogin) -> McpLogin | None:
        """Another access token; None if none is available."""
        async with self._renewing, self._logins.alone(self._key):
            login = self._logins.read(self._key)
            if login is None or not login.access_token:
                return None
            if login.access_token != used.access_token:
                return login
            if not login.refresh_token:
                return None
            newer = await _refresh_tokens(login, self._config)
            await self._logins.write(self._key, newer or _clear_tokens(login))
            return newer

    async def _note(self, response: httpx2.Response) -> None:
        """Record what the server requires, for the next login."""
        said = response.headers.get("www-authenticate", "")
        if not said or len(said) > MAX_CHALLENGE_CHARS:
            return
        login = self._logins.read(self._key) or McpLogin()
        if login.challenge != said:
            await self._logins.write(self._key, msgspec.structs.replace(login, challenge=said))


def build_token_request(login: McpLogin, endpoint: str, data: dict[str, str]) -> httpx2.Request:
    """A request with the client authentication of the registration."""
    client = OAuthClientInformationFull.model_validate(login.client)
    context = OAuthContext(
        server_url=endpoint,
        client_metadata=OAuthClientMetadata(redirect_uris=None),
        storage=NullTokenStorage(),
        redirect_handler=None,
        callback_handler=None,
        client_info=client,
    )
    data, headers = context.prepare_token_auth({**data, "client_id": client.client_id}, {})
    return httpx2.Request("POST", endpoint, data=data, headers=headers)


def update_tokens(login: McpLogin, tokens: OAuthToken) -> McpLogin:
    """The login with new tokens; missing fields keep their values."""
    lives_s = tokens.expires_in
    return msgspec.structs.replace(
        login,
        access_token=tokens.access_token,
        refresh_token=tokens.refresh_token or login.refresh_token,
        expires_at=None if lives_s is None else time.time() + lives_s,
        scope=tokens.scope or login.scope,
        challenge="",
    )


class NullTokenStorage:
    """Storage for the SDK that keeps nothing, because tokens are read after the login."""

    def __init__(self, client: OAuthClientInformationFull | None = None) -> None:
        self._client = client

    async def get_tokens(self) -> OAuthToken | None:
        """None, so that every login is new."""
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Do nothing; the provider keeps them."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """A registration to reuse."""
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Do nothing; the provider keeps it."""


async def _refresh_tokens(login: McpLogin, config: RemoteConfig) -> McpLogin | None:
    """The login with newer tokens; None if it is permanently rejected."""
    data = {"grant_type": "refresh_token", "refresh_token": login.refresh_token}
    if login.resource:
        data["resource"] = login.resource
    try:
        async with httpx2.AsyncClient(
            timeout=LIMIT_S, transport=RestrictedTransport(config)
        ) as http:
            response = await http.send(build_token_request(login, login.token_endpoint, data))
    except AddressNotAllowed as error:
        raise TokenRefreshFailed(f"its login could not be renewed: {error}") from None
    except httpx2.HTTPError as error:
        raise TokenRefreshFailed(
            f"its login could not be renewed ({type(error).__name__})"
        ) from None
    if response.status_code in _REFUSED:
        return None
    try:
        if response.status_code == 200:
            return update_tokens(login, OAuthToken.model_validate_json(response.content))
    except ValidationError:
        raise TokenRefreshFailed(
            "its login could not be renewed: the answer contains no token"
        ) from None
    raise TokenRefreshFailed(f"its login could not be renewed (HTTP {response.status_code})")


def _is_expired(login: McpLogin) -> bool:
    return login.expires_at is not None and time.time() >= login.expires_at


def _clear_tokens(login: McpLogin) -> McpLogin:
    """A login without its rejected tokens: only the registration."""
    return msgspec.structs.replace(login, access_token="", refresh_token="", expires_at=None)


def _add_token(request: httpx2.Request, login: McpLogin | None) -> None:
    if login is not None and login.access_token:
        request.headers["Authorization"] = f"Bearer {login.access_token}"


async def log_out(server: ServerDefinition, logins: McpLogins) -> bool:
    """Remove a login; tokens are revoked first, if possible."""
    config, key = server.config, server.login_key
    async with logins.alone(key):
        login = logins.read(key)
        logins.forget(key)
    if login is None or not login.access_token:
        return False
    token = login.refresh_token or login.access_token
    if login.revocation_endpoint and isinstance(config, RemoteConfig):
        # A server that cannot be reached now will notice when the token expires.
        with suppress(httpx2.HTTPError, ValidationError, OAuthTokenError):
            async with httpx2.AsyncClient(
                timeout=LIMIT_S, transport=RestrictedTransport(config)
            ) as http:
                await http.send(
                    build_token_request(login, login.revocation_endpoint, {"token": token})
                )
    return True
