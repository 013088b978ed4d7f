"""An MCP server that wants a login, and the authorisation server it names, both on the SDK.

They stand on two ports of loopback, as they do on two hosts elsewhere.
"""

import json
import secrets
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    AuthorizeError,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette


class Authority:
    """Gives tokens to everybody who asks, and says yes for the person, unless told otherwise."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.registrations = 0
        self.renewals = 0
        self.lives_s: int | None = 3600
        self.says_no = False
        self.gives_refresh = True
        self.asked: list[AuthorizationParams] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.registrations += 1
        self.clients[client_info.client_id] = client_info

    async def authorize(
        self, client: OAuthClientInformationFull, params: AuthorizationParams
    ) -> str:
        self.asked.append(params)
        if self.says_no:
            raise AuthorizeError("access_denied", "the person said no")
        code = secrets.token_urlsafe(16)
        self.codes[code] = AuthorizationCode(
            code=code,
            client_id=client.client_id,
            scopes=params.scopes or [],
            expires_at=time.time() + 300,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=params.state)

    async def load_authorization_code(self, client: Any, authorization_code: str) -> Any:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client, authorization_code.scopes)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: Any, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.renewals += 1
        return self._tokens(client, scopes)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    verify_token = load_access_token

    async def revoke_token(self, token: Any) -> None:
        self.access.clear()
        self.refresh.clear()

    async def exchange_identity_assertion(self, *_: Any) -> Any:
        raise NotImplementedError

    def _tokens(self, client: OAuthClientInformationFull, scopes: list[str]) -> OAuthToken:
        one, two = secrets.token_urlsafe(24), secrets.token_urlsafe(24)
        self.access[one] = AccessToken(token=one, client_id=client.client_id, scopes=scopes)
        if self.gives_refresh:
            self.refresh[two] = RefreshToken(token=two, client_id=client.client_id, scopes=scopes)
        return OAuthToken(
            access_token=one,
            refresh_token=two if self.gives_refresh else None,
            expires_in=self.lives_s,
            scope=" ".join(scopes) or None,
        )


class Guarded:
    """Both servers, and the address of the one that wants a login."""

    def __init__(self) -> None:
        self.authority = Authority()
        self.sockets = [_bound(), _bound()]
        self.resource, self.issuer = (
            f"http://127.0.0.1:{one.getsockname()[1]}" for one in self.sockets
        )
        self.url = f"{self.resource}/mcp"

    def entry(self, **oauth: Any) -> dict[str, Any]:
        return {"type": "http", "url": self.url, **({"oauth": oauth} if oauth else {})}

    def applications(self) -> list[Any]:
        server = MCPServer(
            "guarded",
            token_verifier=self.authority,
            auth=AuthSettings(
                issuer_url=AnyHttpUrl(self.issuer),
                resource_server_url=AnyHttpUrl(self.url),
                required_scopes=["use"],
                validate_token_resource=False,
            ),
        )

        @server.tool()
        def echo(text: str) -> str:
            return text

        routes = create_auth_routes(
            cast("OAuthAuthorizationServerProvider[Any, Any, Any]", self.authority),
            AnyHttpUrl(self.issuer),
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["use", "more"], default_scopes=["use"]
            ),
            revocation_options=RevocationOptions(enabled=True),
        )
        return [server.streamable_http_app(), Starlette(routes=routes)]


@contextmanager
def guarded_server() -> Generator[Guarded]:
    """Both servers, until the block ends."""
    made = Guarded()
    running: list[tuple[uvicorn.Server, threading.Thread]] = []
    for application, bound in zip(made.applications(), made.sockets, strict=True):
        config = uvicorn.Config(application, log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        running.append((server, thread))
    try:
        yield made
    finally:
        for server, _ in running:
            server.should_exit = True
        for _, thread in running:
            thread.join()


def _bound() -> socket.socket:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.listen(64)
    return bound


@contextmanager
def serving_json(value: Any) -> Generator[str]:
    """The address of a JSON document."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(value).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/metadata.json"
        server.shutdown()
        thread.join()
