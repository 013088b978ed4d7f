"""Access to the HTTP server: only programs of this machine that know the token."""

from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from hmac import compare_digest
from typing import Any

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


class AuthMiddleware:
    """Refuses requests with another Host, from a foreign web page or without the token.

    A web page can make a browser send requests here, also under a name that resolves to this
    machine. The headers Host and Origin reveal that.
    """

    def __init__(self, app: App, *, port: int, token: str | None) -> None:
        self._app = app
        self._hosts = {f"{name}:{port}" for name in LOOPBACK_NAMES}
        if port == 80:
            self._hosts |= set(LOOPBACK_NAMES)
        self._origins = {f"http://{host}" for host in self._hosts}
        self._token = token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        refusal = self._refusal(scope["headers"]) if scope["type"] == "http" else (403, "")
        if refusal is None:
            await self._app(scope, receive, send)
            return
        if scope["type"] == "http":
            await _refuse(send, *refusal)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refusal(self, headers: Iterable[tuple[bytes, bytes]]) -> tuple[int, str] | None:
        given: dict[str, list[str]] = {}
        for name, value in headers:
            given.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        hosts, origins = given.get("host", []), given.get("origin", [])
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            return 421, "This server only accepts loopback host names."
        if any(origin.lower() not in self._origins for origin in origins):
            return 403, "Web pages of other origins may not use this server."
        if self._token is None:
            return None
        said = given.get("authorization", [])
        kind, _, token = said[0].partition(" ") if len(said) == 1 else ("", "", "")
        is_known = compare_digest(token.strip().encode("latin-1"), self._token.encode())
        if kind.lower() != "bearer" or not is_known:
            return 401, "Send the server's token: Authorization: Bearer TOKEN."
        return None


async def _refuse(send: Send, status: int, sentence: str) -> None:
    # Do not keep the connection of a refused client open.
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close")]
    if status == 401:
        headers.append((b"www-authenticate", b'Bearer realm="handaxe"'))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{sentence}\n".encode()})
