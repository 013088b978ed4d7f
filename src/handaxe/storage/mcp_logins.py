"""Logins at MCP servers: one file each below the data directory, readable by its owner only."""

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.contract.ports.mcp_servers import McpLogin, McpLogins
from handaxe.disk import locks
from handaxe.disk.errors import DiskFault, LockTimeout
from handaxe.disk.threads import run_in_thread
from handaxe.disk.versions import read_regular
from handaxe.storage.home import make_private_directory

DIRECTORY = "handaxe-logins"
"""A name of its own, so that it is protected wherever the data directory lies."""
_MAX_BYTES = 1 << 20
_LOOK_AGAIN_S = 0.02


class DiskMcpLogins(McpLogins):
    """The logins below a data directory."""

    def __init__(self, home: Path) -> None:
        self._directory = home / DIRECTORY

    def read(self, key: str) -> McpLogin | None:
        """The login, if there is one."""
        try:
            data, _ = read_regular(self._path(key, "json"), max_bytes=_MAX_BYTES)
            return msgspec.json.decode(data, type=McpLogin)
        except (DiskFault, OSError, msgspec.DecodeError, UnicodeDecodeError):
            # A login that cannot be read is made again, which replaces it.
            return None

    async def write(self, key: str, login: McpLogin) -> None:
        """Keep a login."""
        from handaxe.disk.atomic import replace

        make_private_directory(self._directory)
        path, data = self._path(key, "json"), msgspec.json.encode(login)
        try:
            await run_in_thread(lambda: replace(path, [data], expect=None, mode=0o600))
        except (DiskFault, OSError) as error:
            raise SetupError(f"{path} cannot be written: {error}.") from None

    def forget(self, key: str) -> None:
        """Remove a login."""
        Path(self._path(key, "json")).unlink(missing_ok=True)

    def alone(self, key: str) -> AbstractAsyncContextManager[None]:
        """Hold the lock of a login; it dies with its process."""
        return self._held(key)

    @asynccontextmanager
    async def _held(self, key: str) -> AsyncGenerator[None]:
        make_private_directory(self._directory)
        fd = os.open(self._path(key, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    locks.hold(fd, wait_s=0)
                    break
                except LockTimeout:
                    await asyncio.sleep(_LOOK_AGAIN_S)
            yield
        finally:
            os.close(fd)

    def _path(self, key: str, kind: str) -> str:
        return os.path.realpath(self._directory / f"{key}.{kind}")
