"""The network access of a sandbox with listed hosts: one proxy for HTTP, CONNECT and SOCKS5.

It runs in its own thread. For every command it serves a socket that listens in the command's
network. It checks a host's name and all its addresses, and connects to a checked address.
"""

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from handaxe.shell.sandbox.host_allowlist import can_be_private, explain_refusal, normalize_host
from handaxe.shell.sandbox.proxy_protocol import (
    BadProxyRequest,
    Target,
    confirm_connection,
    read_request,
    refuse_connection,
)
from handaxe.text.ip_addresses import is_public

MOST_REFUSALS = 20
CONNECT_TIMEOUT_S = 30.0

Resolve = Callable[[str, int], Sequence[str]]


class HostRefused(Exception):
    """A refused host, with the sentence for the command."""


class RefusalLog(Protocol):
    """Collects sentences about refused hosts."""

    def refuse(self, sentence: str) -> None:
        """Add a sentence about a refused host."""
        ...


class ProxyConnection:
    """One command's connection to the proxy."""

    def __init__(self, proxy: "FilteringProxy") -> None:
        self._proxy = proxy
        self._inner, outer = socket.socketpair()
        self.refusals: list[str] = []
        proxy.run(self._open, outer)

    @property
    def descriptor(self) -> int:
        """The descriptor that the command's first program inherits."""
        return self._inner.fileno()

    def close(self) -> None:
        """Close every connection of this command."""
        self._inner.close()
        self._proxy.run(self._close)

    def refuse(self, sentence: str) -> None:
        """Record a refusal once."""
        if sentence not in self.refusals and len(self.refusals) < MOST_REFUSALS:
            self.refusals.append(sentence)

    def _open(self, outer: socket.socket) -> None:
        self._outer = outer
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener: socket.socket | None = None
        outer.setblocking(False)  # noqa: FBT003 - so it is called
        asyncio.get_running_loop().add_reader(outer, self._receive)

    def _receive(self) -> None:
        with suppress(BlockingIOError):
            _, descriptors, _, _ = socket.recv_fds(self._outer, 1, 1)
            asyncio.get_running_loop().remove_reader(self._outer)
            self._outer.close()
            if descriptors:
                self._listener = socket.socket(fileno=descriptors[0])
                self._listener.setblocking(False)  # noqa: FBT003 - so it is called
                self._add(self._accept(self._listener))

    async def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            client, _ = await loop.sock_accept(listener)
            self._add(self._serve(client))

    async def _serve(self, client: socket.socket) -> None:
        reader, writer = await asyncio.open_connection(sock=client)
        try:
            await self._proxy.serve(reader, writer, self)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            pass
        finally:
            writer.close()

    def _add(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._outer.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._outer)
            self._outer.close()
        if self._listener is not None:
            self._listener.close()


class FilteringProxy:
    """Connects to listed hosts only."""

    def __init__(
        self,
        allowed: Sequence[str],
        denied: Sequence[str],
        *,
        resolve: Resolve | None = None,
        checked: Mapping[str, str] | None = None,
    ) -> None:
        """`checked` are addresses of allowed hosts that the caller has looked up and checked."""
        self._checked = dict(checked or {})
        self.allowed = tuple(allowed)
        self.denied = tuple(denied)
        self._resolve = resolve or resolve_host
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._run_loop, name="handaxe-sandbox-proxy", daemon=True
        )
        self._thread.start()

    def open(self) -> ProxyConnection:
        """Open a connection for one command."""
        return ProxyConnection(self)

    def close(self) -> None:
        """Stop and close every connection."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def run(self, step: Callable[..., None], *arguments: object) -> None:
        """Run something in the proxy's thread and wait for it."""
        if not self._thread.is_alive():
            return

        async def in_loop() -> None:
            step(*arguments)

        asyncio.run_coroutine_threadsafe(in_loop(), self._loop).result()

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, door: RefusalLog
    ) -> None:
        """Serve one connection."""
        try:
            target = await asyncio.wait_for(read_request(reader, writer), CONNECT_TIMEOUT_S)
        except BadProxyRequest as bad:
            await refuse_connection(writer, bad.target, str(bad))
            return
        try:
            address = await self._resolve_checked(target)
        except HostRefused as refused:
            door.refuse(str(refused))
            await refuse_connection(writer, target, str(refused))
            return
        try:
            upstream = await asyncio.wait_for(
                asyncio.open_connection(address, target.port), CONNECT_TIMEOUT_S
            )
        except (OSError, TimeoutError) as error:
            await refuse_connection(
                writer, target, f"{target.host} cannot be reached: {error}", gone=True
            )
            return
        try:
            await confirm_connection(writer, target)
            upstream[1].write(target.forward)
            await asyncio.gather(_copy(reader, upstream[1]), _copy(upstream[0], writer))
        finally:
            upstream[1].close()

    async def _resolve_checked(self, target: Target) -> str:
        host = normalize_host(target.host)
        shown = f"{target.host[:200]}:{target.port}"
        if host is None:
            raise HostRefused(f"The sandbox refused {shown!r}: it is not a host name.")
        why = explain_refusal(host, self.allowed, self.denied)
        if why is not None:
            raise HostRefused(f"The sandbox refused {shown}: it {why}.")
        if host in self._checked:
            return self._checked[host]
        try:
            found = await asyncio.to_thread(self._resolve, host, target.port)
        except OSError as error:
            raise HostRefused(f"The sandbox could not look up {host}: {error}.") from None
        if not can_be_private(host, self.allowed):
            for address in found:
                if not is_public(address):
                    raise HostRefused(
                        f"The sandbox refused {shown}: its address {address} is not a public one."
                    )
        if not found:
            raise HostRefused(f"The sandbox could not look up {host}: it has no address.")
        return found[0]

    def _run_loop(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.run_until_complete(asyncio.sleep(0))
            self._loop.run_until_complete(self._loop.shutdown_default_executor())
            self._loop.close()


def resolve_host(host: str, port: int) -> list[str]:
    """Every address of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(65_536):
            sink.write(piece)
            await sink.drain()
    with suppress(OSError, RuntimeError):
        if sink.can_write_eof():
            sink.write_eof()


PORT = 47_128

SOURCE = """
import _socket as s, os, sys
out = s.socket(fileno=int(sys.argv[1]))
door = s.socket(s.AF_INET, s.SOCK_STREAM)
door.setsockopt(s.SOL_SOCKET, s.SO_REUSEADDR, 1)
door.bind(("127.0.0.1", int(sys.argv[2])))
door.listen(128)
out.sendmsg([b"x"], [(s.SOL_SOCKET, s.SCM_RIGHTS, door.fileno().to_bytes(4, sys.byteorder))])
out.close()
door.close()
import signal
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def wrap_with_listener(argv: list[str], descriptor: int, interpreter: str) -> list[str]:
    """The command with the listener in front of it."""
    return [interpreter, "-I", "-S", "-c", SOURCE, str(descriptor), str(PORT), *argv]


def build_proxy_environment(*, reaches_local: bool) -> dict[str, str]:
    """The variables that make programs use the proxy."""
    web, any_kind = f"http://127.0.0.1:{PORT}", f"socks5h://127.0.0.1:{PORT}"
    spared = "" if reaches_local else "localhost,127.0.0.1,::1"
    lower = {
        "http_proxy": web,
        "https_proxy": web,
        "ftp_proxy": web,
        "all_proxy": any_kind,
        "no_proxy": spared,
    }
    upper = {name.upper(): value for name, value in lower.items()}
    return {**lower, **upper, "NODE_USE_ENV_PROXY": "1"}
