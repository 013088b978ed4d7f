"""Dry runs: run a command with its writes in an overlay that is discarded."""

import asyncio
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from handaxe.contract.faults.shell import CannotPreview
from handaxe.contract.ports.dry_run import CommandPreviews, Preview
from handaxe.contract.ports.shell import CommandEnd, CommandOutput, ShellCommand
from handaxe.contract.readable_files import count_components, is_below
from handaxe.disk.safe_open import resolve_links
from handaxe.process.child_environment import clean_environment
from handaxe.process.temp_dir import TempDirectory
from handaxe.shell.exec.bash_binary import find_bash
from handaxe.shell.exec.capture import OutputCapture
from handaxe.shell.exec.overlay_mounts import build_temp_options, find_mounts, find_overlay_program
from handaxe.shell.sandbox import seccomp
from handaxe.shell.sandbox.bubblewrap import ISOLATION, KERNEL_FILES, OWN_NETWORK
from handaxe.shell.sandbox.seccomp import open_content_fd
from handaxe.text.paths import is_inside

MAX_OUTPUT_CHARS = 30_000
_APART = (*ISOLATION, OWN_NETWORK)
"""Processes and network are isolated too."""
_PROBE_S = 10.0


class OverlayPreviews(CommandPreviews):
    """Runs commands under bubblewrap with an overlay on each root."""

    def __init__(
        self,
        roots: Callable[[], Sequence[str]],
        *,
        hidden: Callable[[], Sequence[str]] = tuple,
        view: Callable[[], Sequence[str] | None] = lambda: None,
        environment: Callable[[], Mapping[str, str]] = lambda: clean_environment(os.environ, {}),
        program: str | None = None,
    ) -> None:
        """`hidden` are paths that commands may not read.

        `view` are bubblewrap options that show a part of the machine; None: all of it.
        """
        self._roots = roots
        self._environment = environment
        self._hidden = hidden
        self._view = view
        self._program = program
        self._is_possible = False

    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run the command; a `ToolFault` if this machine cannot isolate its changes."""
        roots = _find_outermost_roots(self._roots())
        program = self._program or find_overlay_program(roots)
        if sys.platform != "linux" or program is None:
            raise CannotPreview(reason="there is no bubblewrap 0.11 or newer on this machine")
        place = await asyncio.to_thread(TempDirectory, "preview", _find_outside_directory(roots))
        try:
            mounts = [_Layer.made(place.path, number, root) for number, root in enumerate(roots)]
            temp = await asyncio.to_thread(build_temp_options, roots, place.path)
            options = self._options(roots, mounts, temp)
            if not self._is_possible:
                await _probe(program, options, roots)
                self._is_possible = True
            with _call_filter() as filtering:
                env = {**self._environment(), **command.env}
                argv = [program, *options, *filtering, "--chdir", command.cwd, "--"]
                argv += [find_bash(env.get("PATH", "")), "--noprofile", "--norc", "-c", "--"]
                argv += [command.command, "bash"]
                output, end = await _run(argv, env, timeout_s, filtering)
            return await asyncio.to_thread(_read, mounts, output, end)
        finally:
            await asyncio.to_thread(place.remove)

    def _options(
        self, roots: Sequence[str], layers: "Sequence[_Layer]", temp: Sequence[str]
    ) -> list[str]:
        view, hidden = self._view(), self._hidden()
        if view is None:
            seen = ["--ro-bind", "/", "/", *KERNEL_FILES, "--tmpfs", "/run", *temp]
            return [*_APART, *seen, *_build_mounts(layers, hidden)]
        # Other hidden paths are hidden by the view itself.
        inside = [path for path in hidden if any(is_below(path, root) for root in roots)]
        return [*_APART, *view, *_build_mounts(layers, inside), "--remount-ro", "/"]


class _Layer:
    """One root, and the directories that receive its writes."""

    def __init__(self, root: str, upper: str, work: str) -> None:
        self.root, self.upper = root, upper
        self.options = ("--overlay-src", root, "--overlay", upper, work, root)

    @classmethod
    def made(cls, place: str, number: int, root: str) -> "_Layer":
        upper, work = f"{place}/upper-{number}", f"{place}/work-{number}"
        for directory in (upper, work):
            Path(directory).mkdir(mode=0o700)
        shutil.copymode(root, upper)
        return cls(root, upper, work)


def _build_mounts(layers: Sequence[_Layer], hidden: Sequence[str]) -> list[str]:
    """The overlays and covers of hidden paths, wider ones first, so that the more specific wins."""
    steps: list[tuple[int, int, tuple[str, ...]]] = []
    steps += [(count_components(layer.root), 0, layer.options) for layer in layers]
    for path in hidden:
        real = resolve_links(path)
        if os.path.isdir(real):
            is_open = any(is_below(layer.root, real) for layer in layers)
            covered = ("--perms", "0111" if is_open else "0000", "--tmpfs", real)
            steps.append((count_components(real), 1, covered))
        elif os.path.lexists(real):
            steps.append((count_components(real), 1, ("--ro-bind", "/dev/null", real)))
    return [option for _, _, options in sorted(steps) for option in options]


@contextmanager
def _call_filter() -> Generator[tuple[str, ...]]:
    """The option for the system call filter; empty on unsupported machines."""
    if not seccomp.is_supported():
        yield ()
        return
    descriptor = open_content_fd(seccomp.build_filter())
    try:
        yield ("--seccomp", str(descriptor))
    finally:
        os.close(descriptor)


def _find_outermost_roots(roots: Sequence[str]) -> list[str]:
    return [
        root
        for root in dict.fromkeys(roots)
        if not any(other != root and is_inside(root, other) for other in roots)
    ]


def _find_outside_directory(roots: Sequence[str]) -> str:
    """A directory for the overlays that is not below a root."""
    home = os.path.expanduser("~")  # noqa: PTH111 - there may be none
    for place in (tempfile.gettempdir(), "/var/tmp", "/dev/shm", home):  # noqa: S108
        real = resolve_links(place)
        if os.access(real, os.W_OK) and not any(is_inside(real, root) for root in roots):
            return real
    raise CannotPreview(
        reason="there is no directory outside the working directories for its changes"
    )


async def _probe(program: str, options: Sequence[str], roots: Sequence[str]) -> None:
    """Check that the system allows it, so that a failure is not taken for the command's."""
    process = await asyncio.create_subprocess_exec(
        program,
        *options,
        "--",
        "/bin/sh",
        "-c",
        "exit 0",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(_PROBE_S):
            _, said = await process.communicate()
    except TimeoutError:
        said = b"it did not answer"
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode != 0:
        for mount in (place for root in roots for place in find_mounts(root)):
            raise CannotPreview(
                reason=f"another file system is mounted below a working directory ({mount})"
            )
        reason = said.decode(errors="replace").strip().splitlines()
        raise CannotPreview(
            reason=f"the system does not allow it ({reason[-1] if reason else 'silently'})"
        )


async def _run(
    argv: Sequence[str], env: dict[str, str], timeout_s: float, filtering: Sequence[str]
) -> tuple[CommandOutput, CommandEnd]:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        *argv,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
        pass_fds=[int(descriptor) for descriptor in filtering[1:]],
    )
    said = OutputCapture("", 0)
    is_late = False
    try:
        async with asyncio.timeout(timeout_s):
            await _listen(process, said)
            await process.wait()
    except TimeoutError:
        is_late = True
    finally:
        if process.returncode is None:
            # Its first process is the init of a namespace of its own: everything goes with it.
            process.kill()
            await process.wait()
    code = process.returncode
    end = CommandEnd(
        how="time_up" if is_late else "exit",
        exit_code=None if is_late else code,
        duration_s=time.monotonic() - began,
    )
    said.close()
    return said.output(MAX_OUTPUT_CHARS), end


async def _listen(process: asyncio.subprocess.Process, said: OutputCapture) -> None:
    assert process.stdout is not None
    while piece := await process.stdout.read(1 << 16):
        said.take(piece, len(piece))


def _read(layers: Sequence[_Layer], output: CommandOutput, end: CommandEnd) -> Preview:
    from handaxe.shell.exec.overlay_changes import LayerChanges, read_layer

    changes = LayerChanges()
    for layer in layers:
        read_layer(layer.upper, layer.root, changes)
        _compare_root(layer, changes.others)
    return Preview(
        output=output,
        end=end,
        diffs=tuple(sorted(changes.diffs, key=lambda diff: diff.path)),
        others=tuple(sorted(changes.others)),
        left_out=tuple(sorted(changes.left_out)),
    )


def _compare_root(layer: _Layer, others: list[str]) -> None:
    old, new = (os.stat(place).st_mode & 0o7777 for place in (layer.root, layer.upper))
    if old != new:
        others.append(f"{layer.root}: mode would change from {old:o} to {new:o}")
