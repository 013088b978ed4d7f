"""Web sockets on loopback: a proper server, and one that may do whatever it likes."""

import base64
import contextlib
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from typing import Any

from websockets.sync.server import ServerConnection, serve

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@contextlib.contextmanager
def serving(
    handler: Callable[[ServerConnection], None],
    *,
    host: str = "127.0.0.1",
    tls: ssl.SSLContext | None = None,
    **options: Any,
) -> Generator[int]:
    """A server of the library; its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family)
    with serve(handler, sock=listener, ssl=tls, compression=None, **options) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.socket.getsockname()[1]
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def answering(handler: Callable[[socket.socket], None]) -> Generator[int]:
    """A server that treats its one connection as `handler` says; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            with contextlib.suppress(OSError):
                connection, _ = listener.accept()
                with connection:
                    handler(connection)

        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def shake_hands(connection: socket.socket) -> None:
    """Agree to a web socket, by hand."""
    request = b""
    while b"\r\n\r\n" not in request:
        request += connection.recv(4096)
    key = next(
        line.partition(b":")[2].strip()
        for line in request.split(b"\r\n")
        if line.lower().startswith(b"sec-websocket-key")
    )
    accept = base64.b64encode(hashlib.sha1(key + _MAGIC).digest())
    connection.sendall(
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
    )


def gone(connection: socket.socket) -> None:
    """Wait until the other side has ended the connection."""
    with contextlib.suppress(OSError):
        while connection.recv(4096):
            pass


def has_ipv6() -> bool:
    """Whether this machine can be reached at its address of the newer kind."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True
