"""A picture of a page, drawn by the Chromium of this machine.

Whatever the page loads goes through a proxy that connects to checked addresses only.
"""

import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path

from handaxe.contract.ports.web import FetchedPage
from handaxe.disk.threads import run_in_thread
from handaxe.process.child_environment import clean_environment
from handaxe.process.process_tags import tag_environment
from handaxe.process.worker_pool import WORKERS
from handaxe.shell.sandbox.proxy import FilteringProxy
from handaxe.web.address import parse_address

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_WIDTH, _HEIGHT = 1280, 1600
_SETTLE_MS = 3_000
_OPTIONS = (
    "--headless=new",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--disable-extensions",
    "--disable-component-update",
    "--disable-background-networking",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-default-browser-check",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    f"--virtual-time-budget={_SETTLE_MS}",
    f"--window-size={_WIDTH},{_HEIGHT}",
    # Without this, Chromium reaches this machine beside the proxy.
    "--proxy-bypass-list=<-loopback>",
)


def find_browser() -> str | None:
    """The path of a Chromium; None if none is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


async def draw_page(
    page: FetchedPage, timeout_s: float, denied: Sequence[str] = ()
) -> bytes | None:
    """The page as PNG; None if no browser is found or it fails."""
    browser = find_browser()
    if browser is None:
        return None
    host = parse_address(page.url).host.strip("[]")
    # `*` allows no private address; the page's own host was allowed, at the address it came from.
    checked = {host: page.address} if page.address else {}
    proxy = FilteringProxy(("*", host), denied, checked=checked)
    tasks: set[asyncio.Task[None]] = set()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(_serve(proxy, reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        with tempfile.TemporaryDirectory(prefix="handaxe-page-") as folder:
            picture = Path(folder, "page.png")
            port = server.sockets[0].getsockname()[1]
            await _run_browser(
                [
                    browser,
                    *_OPTIONS,
                    # The sandbox of Chromium refuses to work for root.
                    *(["--no-sandbox"] if os.geteuid() == 0 else []),
                    f"--proxy-server=http://127.0.0.1:{port}",
                    f"--user-data-dir={folder}/profile",
                    f"--screenshot={picture}",
                    page.url,
                ],
                folder,
                timeout_s,
            )
            return await run_in_thread(lambda: _read_picture(picture))
    finally:
        server.close()
        for task in tasks:
            # A server that never ends its answer would keep the connection.
            task.cancel()
        await asyncio.to_thread(proxy.close)


class _NoReport:
    """Drops the sentences on refused hosts."""

    def refuse(self, sentence: str) -> None:
        """Drop it."""


async def _serve(
    proxy: FilteringProxy, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        try:
            await proxy.serve(reader, writer, _NoReport())
        finally:
            writer.close()


def _read_picture(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


async def _run_browser(argv: list[str], folder: str, timeout_s: float) -> None:
    """Run it and end everything that it started."""
    child = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=folder,
        env=tag_environment(clean_environment(os.environ, {"HOME": folder, "TMPDIR": folder})),
        start_new_session=True,
    )
    WORKERS.keep_watch()
    try:
        async with asyncio.timeout(timeout_s):
            await child.wait()
    except TimeoutError:
        pass
    finally:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        await asyncio.shield(child.wait())
