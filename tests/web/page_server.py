"""A web server on loopback for tests: pages by path, and what was asked of it."""

import http.server
import socket
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress


class Reply:
    """What the server answers to one path."""

    def __init__(
        self, body: bytes | str = b"", status: int = 200, *, type: str = "text/html", **headers: str
    ) -> None:
        self.body = body.encode() if isinstance(body, str) else body
        self.status = status
        self.headers = {
            "content-type": type,
            **{k.replace("_", "-"): v for k, v in headers.items()},
        }


class Asked:
    """One request, and the address that it came to."""

    def __init__(self, handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        self.path = handler.path
        self.method = handler.command
        self.headers = {name.lower(): value for name, value in handler.headers.items()}
        self.address = handler.connection.getsockname()[0]
        self.body = body


class PageServer:
    """Answers by path; a function as answer may look at the request."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.pages: dict[str, Reply | Callable[[Asked], Reply]] = {}
        self.asked: list[Asked] = []

    def url(self, path: str = "/", host: str = "localhost") -> str:
        return f"http://{host}:{self.port}{path}"


@contextmanager
def serve_pages(host: str = "127.0.0.1", **pages: Reply | str) -> Generator[PageServer]:
    """A server with these pages by name, until the end."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:
            return

        def do_GET(self) -> None:
            length = int(self.headers.get("content-length") or 0)
            asked = Asked(self, self.rfile.read(length))
            served.asked.append(asked)
            reply = served.pages.get(self.path.partition("?")[0], Reply("not here", 404))
            reply = reply(asked) if callable(reply) else reply
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body)))
            self.end_headers()
            try:
                self.wfile.write(reply.body)
            except OSError:
                return

        do_POST = do_GET  # noqa: N815 - its name in http.server

    server = http.server.ThreadingHTTPServer((host, 0), Handler)
    server.daemon_threads = True
    served = PageServer(server.server_address[1])
    served.pages = {
        f"/{name}": page if isinstance(page, Reply) else Reply(page) for name, page in pages.items()
    }
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def answer_raw(answer: bytes) -> Generator[str]:
    """A server that says these bytes to one request; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            with suppress(OSError):
                client, _ = listener.accept()
                with client:
                    client.recv(65_536)
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://localhost:{listener.getsockname()[1]}/"
        thread.join()
