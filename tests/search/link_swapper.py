"""A process that swaps two names for ever, as fast as the kernel can."""

import ctypes
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

EXCHANGE = 2
HERE = -100


def exchange_for_ever(one: str, other: str) -> None:
    libc = ctypes.CDLL(None)
    print("ready", flush=True)  # noqa: T201 - the parent waits for it
    while libc.renameat2(HERE, one.encode(), HERE, other.encode(), EXCHANGE) == 0:
        pass


@contextmanager
def swapping(one: Path, other: Path) -> Generator[None]:
    """While this is open the two names change places all the time."""
    command = [sys.executable, __file__, str(one), str(other)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as swapper:
        assert swapper.stdout is not None
        swapper.stdout.readline()
        try:
            yield
        finally:
            swapper.kill()


if __name__ == "__main__":
    exchange_for_ever(*sys.argv[1:3])
