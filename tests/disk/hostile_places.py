"""Small or read-only file systems, and a user who is not root."""

import contextlib
import os
import pickle
import subprocess
import warnings
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534


@contextlib.contextmanager
def mounted(at: Path, *arguments: str) -> Generator[Path]:
    done = subprocess.run(
        ["mount", *arguments, str(at)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"mounting is not possible here: {done.stderr.strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def as_nobody(function: Callable[[], Any]) -> Any:
    """The result of a function run by an ordinary user in a child process."""
    if os.getuid():
        pytest.skip("only root can become somebody else")
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        # The child only calls the function and leaves.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = (True, function())
        except BaseException as error:  # noqa: BLE001 (raised again in the parent)
            answer = (False, error)
        with contextlib.suppress(BaseException):
            os.write(writer, pickle.dumps(answer))
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        worked, value = pickle.loads(pipe.read())
    os.waitpid(child, 0)
    if not worked:
        raise value
    return value
