"""A shell of a session, and what tests ask about processes."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path

import pytest

from handaxe.contract.ports.shell import RunningCommand, ShellCommand
from handaxe.shell.exec.environment.command_environment import EnvironmentFilter
from handaxe.shell.exec.local_shell import LocalShell, ShellLimits


class Bench:
    """A shell in a directory, with shortcuts."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ended: list[RunningCommand] = []
        self.shells: list[LocalShell] = []
        self.shell = self.another()

    def another(self, limits: ShellLimits | None = None, **more) -> LocalShell:
        shell = LocalShell(
            self.directory / "tasks",
            environment=EnvironmentFilter().environment(os.environ),
            on_end=self.ended.append,
            limits=limits,
            **more,
        )
        self.shells.append(shell)
        return shell

    async def start(self, text: str, shell: LocalShell | None = None, **more) -> RunningCommand:
        command = ShellCommand(call_id="c", command=text, **{"cwd": str(self.directory), **more})
        return await (shell or self.shell).start(command)

    async def run(self, text: str, **more) -> RunningCommand:
        running = await self.start(text, **more)
        assert await running.wait(60)
        return running

    async def said(self, text: str, **more) -> str:
        return (await self.run(text, **more)).output(100_000).head


@pytest.fixture
async def bench(tmp_path):
    opened = Bench(tmp_path)
    yield opened
    for shell in opened.shells:
        await shell.close()


@pytest.fixture
def mark():
    """A word that no other process has in its arguments."""
    return f"mark{secrets.token_hex(8)}"


def _living(mark: str) -> list[str]:
    """Every process with this word in its arguments, zombies apart."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdigit() and int(process.name) != os.getpid():
            try:
                arguments = (process / "cmdline").read_bytes()
                state = (process / "stat").read_text().rpartition(")")[2].split()[0]
            except OSError:
                continue
            if mark.encode() in arguments and state != "Z":
                found.append(f"{process.name} {state} {arguments!r}")
    return found


@pytest.fixture
def living() -> Callable[[str], list[str]]:
    """Ask for every living process with a word in its arguments."""
    return _living
