"""OAuth login at a server: the SDK's provider runs it, and the user approves it.

The provider's flow is a sequence of requests and answers. This adds the scopes and the
authorization server that the configuration names, and checks every request to another server.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp_types
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.exceptions import OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.utils import (
    extract_field_from_www_auth,
    extract_resource_metadata_from_www_auth,
    extract_scope_from_www_auth,
    union_scopes,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
)
from pydantic import AnyUrl, ValidationError

from handaxe.config.mcp_definitions import RemoteConfig
from handaxe.contract.ports.mcp_servers import McpLogin
from handaxe.mcp.oauth_callback import (
    LOOPBACK,
    PATH,
    OAuthCallback,
    get_callback_port,
    listen_for_callback,
)
from handaxe.mcp.oauth_tokens import (
    LIMIT_S,
    SHORT_OF_SCOPE,
    NullTokenStorage,
    update_tokens,
)
from handaxe.mcp.ssrf_guard import RestrictedTransport
from handaxe.text.escape import strip_hidden

Show = Callable[[str], Awaitable[None]]

_LOOPBACK_HOSTS = frozenset({"localhost", LOOPBACK, "::1"})
_MAX_REASON_CHARS = 500


class OAuthLoginFailed(Exception):
    """The login failed; the reason."""


async def log_in(
    config: RemoteConfig,
    known: McpLogin | None,
    show: Show,
    *,
    client_secret: str | None = None,
    wait_s: float,
) -> McpLogin:
    """A new login at a server; raises `OAuthLoginFailed`."""
    port = config.oauth.callback_port
    try:
        async with (
            asyncio.timeout(wait_s),
            listen_for_callback(
                port or get_callback_port(known), is_fixed=port is not None
            ) as callback,
        ):
            return await _OAuthLogin(config, known, show, callback, client_secret).made()
    except TimeoutError:
        raise OAuthLoginFailed(f"it was not finished within {wait_s:g} s") from None
    except (OAuthFlowError, OAuthRegistrationError, OAuthTokenError) as error:
        raise OAuthLoginFailed(strip_hidden(str(error), _MAX_REASON_CHARS)) from None
    except ValidationError as error:
        raise OAuthLoginFailed(f"an answer does not follow the protocol ({error.title})") from None
    except httpx2.HTTPError as error:
        told = strip_hidden(str(error), _MAX_REASON_CHARS) or type(error).__name__
        raise OAuthLoginFailed(told.replace(config.url, config.url.partition("?")[0])) from None
    except OSError as error:
        raise OAuthLoginFailed(f"the port {port or 0} of this machine: {error.strerror}") from None


class _OAuthLogin(httpx2.Auth):
    """A running login; as `Auth` it drives the provider's flow."""

    def __init__(
        self,
        config: RemoteConfig,
        known: McpLogin | None,
        show: Show,
        callback: OAuthCallback,
        client_secret: str | None,
    ) -> None:
        self._config = config
        self._known = known or McpLogin()
        self._show = show
        self._callback = callback
        self._led = RestrictedTransport(config)
        client_id = config.oauth.client_id
        is_document = client_id is not None and urlsplit(client_id).scheme == "https"
        # Clients that people register by hand have the name there, others the number (RFC 8252).
        host = LOOPBACK if client_id is None else "localhost"
        self._redirect = f"http://{host}:{callback.port}{PATH}"
        client = None
        if client_id is not None and not is_document:
            client = self._build_client(client_id, client_secret)
        elif not is_document:
            client = self._load_client()
        self._provider = OAuthClientProvider(
            config.url,
            OAuthClientMetadata(client_name="handaxe", redirect_uris=[AnyUrl(self._redirect)]),
            NullTokenStorage(client),
            redirect_handler=self._ask,
            callback_handler=self._answer,
            client_metadata_url=client_id if is_document else None,
        )

    async def made(self) -> McpLogin:
        """The login, verified by the server's answer."""
        async with httpx2.AsyncClient(
            headers=self._config.headers, timeout=LIMIT_S, transport=self._led
        ) as http:
            await self._prepare(http)
            request = self._build_first_request(http)
            response = await http.send(request, auth=self, stream=True)
            await response.aclose()
            if response.status_code in {401, 403}:
                raise OAuthLoginFailed(
                    f"the server rejects its token (HTTP {response.status_code})"
                )
            await _end_session(http, request, response)
        context = self._provider.context
        assert context.current_tokens is not None
        assert context.client_info is not None
        metadata = context.oauth_metadata
        base = context.get_authorization_base_url(self._config.url)
        revocation = metadata.revocation_endpoint if metadata else None
        asks_resource = context.should_include_resource_param(context.protocol_version)
        login = McpLogin(
            token_endpoint=str(metadata.token_endpoint) if metadata else f"{base}/token",
            revocation_endpoint=str(revocation) if revocation else None,
            resource=context.get_resource_url() if asks_resource else None,
            client=context.client_info.model_dump(mode="json", exclude_none=True),
        )
        return update_tokens(login, context.current_tokens)

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The provider's flow, with the server's first answer adapted."""
        flow = self._provider.async_auth_flow(request)
        try:
            response = self._build_challenge((yield await anext(flow)))
            while True:
                outgoing = await flow.asend(response)
                _check_address(str(outgoing.url), self._config.url)
                response = yield outgoing
        except StopAsyncIteration:
            return
        finally:
            await flow.aclose()

    def _build_client(self, client_id: str, secret: str | None) -> OAuthClientInformationFull:
        return OAuthClientInformationFull(
            client_id=client_id,
            client_secret=secret,
            redirect_uris=[AnyUrl(self._redirect)],
            token_endpoint_auth_method="client_secret_basic" if secret else "none",
        )

    def _load_client(self) -> OAuthClientInformationFull | None:
        """The registration of the last login, if it has the same redirect address."""
        try:
            client = OAuthClientInformationFull.model_validate(self._known.client)
        except ValidationError:
            return None
        fits = self._redirect in map(str, client.redirect_uris or ())
        return client if fits else None

    async def _prepare(self, http: httpx2.AsyncClient) -> None:
        """Use the authorization server that the configuration names, if any."""
        address = self._config.oauth.auth_server_metadata_url
        if address is None:
            return
        _check_address(address, self._config.url)
        # The entry's headers are for its server only.
        request = httpx2.Request("GET", address, headers={"Accept": "application/json"})
        found = await http.send(request)
        if found.status_code != 200:
            raise OAuthLoginFailed(
                f"`oauth.authServerMetadataUrl` answers with HTTP {found.status_code}"
            )
        self._provider.context.oauth_metadata = OAuthMetadata.model_validate_json(found.content)

    def _build_first_request(self, http: httpx2.AsyncClient) -> httpx2.Request:
        if self._config.kind == "sse":
            return http.build_request(
                "GET", self._config.url, headers={"Accept": "text/event-stream"}
            )
        params: dict[str, Any] = {
            "protocolVersion": mcp_types.LATEST_PROTOCOL_VERSION,
            "capabilities": {},
            "clientInfo": {"name": "handaxe", "version": "login"},
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        accepted = {"Accept": "application/json, text/event-stream"}
        return http.build_request("POST", self._config.url, json=body, headers=accepted)

    def _build_challenge(self, response: httpx2.Response) -> httpx2.Response:
        """The challenge for the provider: the server's refusal, and the configured scopes."""
        said = response
        last = httpx2.Response(
            401,
            headers={"www-authenticate": self._known.challenge},
            request=response.request,
        )
        if response.status_code not in {401, 403}:
            # Some servers accept all connections and refuse only calls.
            if not self._known.challenge:
                raise OAuthLoginFailed(
                    f"the server does not ask for one (it answers with HTTP {response.status_code})"
                )
            said = last
        scope = self._config.oauth.scope
        if scope is None:
            scope = extract_scope_from_www_auth(said)
            if extract_field_from_www_auth(last, "error") == SHORT_OF_SCOPE:
                scope = union_scopes(self._known.scope, extract_scope_from_www_auth(last))
        fields = {
            "resource_metadata": extract_resource_metadata_from_www_auth(said),
            "scope": scope,
        }
        is_found = self._provider.context.oauth_metadata is not None
        if is_found:
            # The provider looks for no other authorisation server when only rights are missing.
            fields["error"] = SHORT_OF_SCOPE
        listed = ", ".join(f'{name}="{value}"' for name, value in fields.items() if value)
        return httpx2.Response(
            403 if is_found else 401,
            headers={"www-authenticate": f"Bearer {listed}".strip()},
            request=response.request,
        )

    async def _ask(self, address: str) -> None:
        _check_address(address, self._config.url)
        await self._led.find_addresses(address)
        (state,) = parse_qs(urlsplit(address).query)["state"]
        self._callback.expect(state)
        await self._show(address)

    async def _answer(self) -> AuthorizationCodeResult:
        given = await self._callback.answer()
        if "code" not in given:
            why = given.get("error_description") or given.get("error") or "no code came back"
            raise OAuthLoginFailed(f"it was refused ({strip_hidden(why, _MAX_REASON_CHARS)})")
        return AuthorizationCodeResult(
            code=given["code"], state=given.get("state"), iss=given.get("iss")
        )


def _check_address(address: str, server: str) -> None:
    """Check an address: credentials go only to https, to this machine, or to the server itself."""
    parts = urlsplit(address)
    is_safe = parts.scheme == "https" or (
        parts.scheme == "http"
        and (parts.hostname in _LOOPBACK_HOSTS or parts.netloc == urlsplit(server).netloc)
    )
    if not is_safe or not address.isascii() or not address.isprintable():
        raise OAuthLoginFailed(
            f"it leads to {strip_hidden(address, 200)!r}, which is neither https nor this machine"
        )


async def _end_session(
    http: httpx2.AsyncClient, request: httpx2.Request, response: httpx2.Response
) -> None:
    """End the session that the verification opened, if any."""
    session_id = response.headers.get("mcp-session-id")
    if session_id is None:
        return
    headers = {
        "mcp-session-id": session_id,
        "Authorization": request.headers.get("Authorization", ""),
    }
    with suppress(httpx2.HTTPError):
        await http.delete(request.url, headers=headers)
