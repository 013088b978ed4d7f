"""A change in order with what else has to be durable: what comes before it, and what comes late."""

import os
from collections.abc import Callable

import msgspec

from handaxe.disk.durability import close, finish_directory_sync
from handaxe.disk.early_sync import EarlySync, begin_sync
from handaxe.disk.faults import explained

BeforeChange = Callable[[], None]
"""Called before anything the user owns is touched; what it raises stops the change."""


def nothing() -> None:
    """Whoever has nothing to wait for."""


class LateName(msgspec.Struct, frozen=True):
    """A file that has its new content, whose name is on its way to the device."""

    path: str
    fd: int
    sync: EarlySync

    def wait(self) -> None:
        """Return when the name is durable, once.

        Raises:
            WriteFailed: it cannot be made durable; the new content is in place.
        """
        try:
            with explained("sync the directory after replacing the file", applied=True):
                finish_directory_sync(self.sync.wait)
        finally:
            close(self.fd)


class Order(msgspec.Struct, frozen=True):
    """What a change waits for, and whether its end is waited for by somebody else."""

    before_change: BeforeChange = nothing
    late_names: list[LateName] | None = None
    """Takes what is still to be waited for; None: the change waits itself."""

    def begin_sync(self, path: str, directory_fd: int) -> bool:
        """Begin to make the name of a file durable; False if that has to be done at once."""
        if self.late_names is None:
            return False
        fd = os.dup(directory_fd)
        sync = begin_sync(fd)
        if sync is None:
            close(fd)
            return False
        self.late_names.append(LateName(path, fd, sync))
        return True


AT_ONCE = Order()
"""Nothing comes before the change, and it is durable at its end."""
