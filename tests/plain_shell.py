"""A small real shell for tests of what stands above the port: bash in a session of its own."""

import asyncio
import contextlib
import os
import signal
import time
from pathlib import Path

import msgspec

from handaxe.contract.ports.jobs import JobState
from handaxe.contract.ports.shell import (
    CommandEnd,
    CommandOutput,
    RunningCommand,
    Shell,
    ShellCommand,
)
from handaxe.contract.shell_faults import NoDirectory


class PlainShell(Shell):
    """Runs `bash -c` and kills its process group; keeps all output."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.started: list[PlainCommand] = []

    async def start(self, command: ShellCommand) -> RunningCommand:
        if not Path(command.cwd).is_dir():
            raise NoDirectory(command.cwd, "No such file or directory")
        self._directory.mkdir(parents=True, exist_ok=True)
        running = PlainCommand(command, self._directory / f"b{len(self.started) + 1}.output")
        await running.begin()
        self.started.append(running)
        return running

    async def close(self) -> None:
        for running in self.started:
            await running.stop()


class PlainCommand(RunningCommand):
    """One bash."""

    def __init__(self, command: ShellCommand, path: Path) -> None:
        self._command = command
        self._path = path
        self._said = bytearray()
        self._listeners = []
        self._end = None
        self._over = asyncio.Event()
        self._began = time.monotonic()
        self._stopped = False
        self.is_let_go = False
        self.asks: str | None = None

    async def begin(self) -> None:
        read_cwd, write_cwd = os.pipe()
        self._read_cwd = read_cwd
        text = f"trap 'pwd -P >&{write_cwd}' EXIT\n{self._command.command}"
        self._process = await asyncio.create_subprocess_exec(
            "/bin/bash", "-c", text,
            cwd=self._command.cwd,
            env={**os.environ, **self._command.env, "GIT_PAGER": "cat", "PAGER": "cat"},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=(write_cwd,),
        )  # fmt: skip
        os.close(write_cwd)
        self._path.touch()
        self._watch = asyncio.create_task(self._see_to_it())

    async def _see_to_it(self) -> None:
        assert self._process.stdout
        reading = asyncio.create_task(self._read())
        code = await self._process.wait()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await reading
        cwd = os.read(self._read_cwd, 65536).decode().strip() or None
        os.close(self._read_cwd)
        self._end = CommandEnd(
            how="stopped" if self._stopped else "signal" if code < 0 else "exit",
            exit_code=128 - code if code < 0 else code,
            signal=-code if code < 0 else None,
            duration_s=time.monotonic() - self._began,
            cwd=cwd,
        )
        self._process._transport.close()
        self._over.set()

    async def _read(self) -> None:
        while piece := await self._process.stdout.read(65536):
            self._said += piece
            with self._path.open("ab") as file:
                file.write(piece)
            for listener in list(self._listeners):
                listener(piece)

    @property
    def end(self) -> CommandEnd | None:
        return self._end

    @property
    def state(self) -> JobState:
        end = self._end
        status = "running"
        if end is not None:
            status = "completed" if end.exit_code == 0 else "failed"
            status = "killed" if end.how == "stopped" else status
        return JobState(
            job_id=self._path.stem,
            kind=self._command.kind,
            status=status,
            description=self._command.description,
            command=self._command.command,
            output_path=str(self._path),
            output_bytes=len(self._said),
            exit_code=end.exit_code if end else None,
            signal=end.signal if end else None,
            waiting_for_input=self.asks if end is None else None,
        )

    def output(self, limit_chars: int) -> CommandOutput:
        text = self._said.decode(errors="replace")
        total = CommandOutput(
            head=text,
            tail="",
            total_bytes=len(self._said),
            total_lines=text.count("\n") + (not text.endswith("\n") and bool(text)),
            kept_bytes=len(self._said),
            is_binary="\0" in text,
        )
        if len(text) <= limit_chars:
            return total
        half = limit_chars // 2
        return msgspec.structs.replace(total, head=text[:half], tail=text[-half:])

    def tail(self, limit_chars: int) -> str:
        return self._said.decode(errors="replace")[-limit_chars:].rstrip("\n")

    def let_go(self) -> None:
        self.is_let_go = True

    def follow(self, listener):
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def wait(self, timeout_s: float | None = None) -> bool:
        try:
            async with asyncio.timeout(timeout_s):
                await self._over.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        if self._end is None:
            self._stopped = True
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
        await self._over.wait()
