"""Mount sources held open, so that parallel commands cannot replace them.

Between the check of a root and the mount, another command could replace a directory by a link, and
the mount would show its target. bubblewrap compares the mount with the descriptor and exits if they
differ.
"""

import os
import stat
import subprocess
from collections.abc import Sequence
from functools import lru_cache

from handaxe.contract.faults.shell import NoSandbox
from handaxe.shell.sandbox import mount_points
from handaxe.shell.sandbox.protected_files import ProtectedPathGuard
from handaxe.shell.sandbox.proxy import ProxyConnection
from handaxe.text.escape import to_visible_text

_PINNED = {"--bind": "--bind-fd", "--ro-bind": "--ro-bind-fd", "--bind-try": "--bind-fd"}
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
MOST_PINS = 200
_HELP_TIMEOUT_S = 10.0


class PathReplaced(OSError):
    """A path changed since it was checked."""


@lru_cache(maxsize=8)
def can_pin(program: str) -> bool:
    """Whether this bubblewrap accepts descriptors as sources (version 0.10 or newer)."""
    try:
        told = subprocess.run(  # noqa: S603 - a program of the system or of ours
            [program, "--help"], capture_output=True, timeout=_HELP_TIMEOUT_S, check=False, env={}
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return b"--ro-bind-fd" in told.stdout + told.stderr


def pin(options: Sequence[str], roots: Sequence[str]) -> tuple[list[str], list[int]]:
    """The options with a descriptor for every source below a root; the caller closes them.

    Raises:
        PathReplaced: a path is missing or became a link.
    """
    pinned: list[str] = []
    held: list[int] = []
    left = iter(options)
    try:
        for option in left:
            if option not in _PINNED:
                pinned.append(option)
                continue
            source, target = next(left), next(left)
            root = _find_outermost_root(source, roots)
            if source != target or root is None:
                pinned += [option, source, target]
                continue
            held.append(_open(source, root, len(held)))
            pinned += [_PINNED[option], str(held[-1]), target]
    except BaseException:
        for descriptor in held:
            os.close(descriptor)
        raise
    return pinned, held


def _find_outermost_root(path: str, roots: Sequence[str]) -> str | None:
    """The outermost root above a path."""
    around = [root for root in roots if path.startswith(f"{root.rstrip('/')}/")]
    return min(around, key=len, default=None)


def _open(path: str, root: str, number: int) -> int:
    """Open a path through real directories only."""
    if number >= MOST_PINS:
        raise PathReplaced(f"there are more than {MOST_PINS} protected places")
    descriptor = os.open(root, os.O_PATH | os.O_CLOEXEC)
    try:
        for name in path[len(root) :].strip("/").split("/"):
            following = os.open(name, _PLACE, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = following
        is_link = stat.S_ISLNK(os.fstat(descriptor).st_mode)
    except OSError as error:
        os.close(descriptor)
        raise PathReplaced(
            f"{path} changed while the command was prepared: {error.strerror}"
        ) from None
    if is_link:
        os.close(descriptor)
        raise PathReplaced(f"{path} became a link while the command was prepared")
    return descriptor


class CommandCleanup:
    """Cleanup after a command; calling it does the work and returns notes."""

    def __init__(
        self,
        *descriptors: int,
        guard: ProtectedPathGuard | None,
        told: tuple[str, ...] = (),
        door: ProxyConnection | None = None,
        masks: tuple[Sequence[str], str | None] = ((), None),
    ) -> None:
        self.descriptors = descriptors
        self._guard = guard
        self._earlier = told
        self._door = door
        self._masks = masks
        self._told: tuple[str, ...] | None = None

    def pin(self, options: list[str], roots: Sequence[str]) -> list[str]:
        """Hold the sources of mounts open until the end."""
        try:
            options, held = pin(options, roots)
        except PathReplaced as error:
            self()
            raise NoSandbox(why=str(error)) from None
        self.descriptors += tuple(held)
        return options

    def __call__(self) -> tuple[str, ...]:
        """Clean up; returns one note per event, the same ones on every call."""
        if self._told is None:
            for descriptor in self.descriptors:
                os.close(descriptor)
            mount_points.release_mount_points(*self._masks)
            told = self._earlier
            if self._guard is not None:
                told = (*told, *self._guard.restore())
            if self._door is not None:
                self._door.close()
                told = (*map(to_visible_text, self._door.refusals), *told)
            self._told = told
        return self._told
