"""Run hook programs and call hook servers from this machine."""

import asyncio
import os
import secrets
import shlex
import shutil
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Never, TypeVar

from handaxe.contract.ports.hooks import (
    HookCommand,
    HookCommandResult,
    HookPrograms,
    HookRequest,
    HookResponse,
    HookUnreachable,
    ShellName,
)
from handaxe.hooks.command_process import MARK, HookProcess, HookProcessResult
from handaxe.process.child_environment import clean_environment
from handaxe.process.process_tags import kill_tagged

MAX_RUNNING = 32
"""Maximum number of running programs per session; others wait."""
CLOSING_S = 2.0

T = TypeVar("T")


class LocalHookPrograms(HookPrograms):
    """Starts programs in their own sessions, with a clean environment and no descriptors."""

    def __init__(self) -> None:
        self._token = secrets.token_hex(8)
        self._turns = asyncio.Semaphore(MAX_RUNNING)
        self._running: dict[HookProcess, asyncio.Future[HookProcessResult]] = {}
        self._started = 0
        # Even if the session is never closed, no process remains.
        self._last_will = weakref.finalize(self, _kill_all, self._running)

    async def run(self, command: HookCommand, stdin: bytes) -> HookCommandResult:
        """Wait for the program; cancelling ends it with its children."""
        if command.variables is None:
            return await self._run(command, stdin)
        from handaxe.hooks.env_file import run_with_env_file

        return await run_with_env_file(command, stdin, self._run)

    async def _run(self, command: HookCommand, stdin: bytes) -> HookCommandResult:
        async with self._turns:
            self._started += 1
            process = HookProcess(
                build_argv(command),
                cwd=command.cwd,
                env=clean_environment(os.environ, command.env, command.env_names),
                mark=f"{self._token}.{self._started}.",
            )
            ended = _run_in_thread(lambda: process.run(stdin, command.timeout_s))
            self._running[process] = ended
            # An abandoned one counts until it has really ended.
            ended.add_done_callback(lambda _: self._running.pop(process, None))
            try:
                finished = await asyncio.shield(ended)
            except asyncio.CancelledError:
                process.kill()
                raise
            except (OSError, ValueError, RuntimeError) as error:
                reason = getattr(error, "strerror", None) or error
                raise HookUnreachable(f"it could not be started ({reason})") from None
        if finished.timed_out:
            sentence = f"it did not finish within {command.timeout_s:g} s and was stopped"
            raise HookUnreachable(sentence, timed_out=True)
        return HookCommandResult(finished.exit_code, finished.stdout, finished.stderr)

    async def post(self, request: HookRequest, body: bytes) -> HookResponse:
        """Send the event as JSON and wait for the answer."""
        from handaxe.hooks.http_request import post

        return await post(request, body, os.environ)

    async def close(self) -> None:
        """End running programs, and leftovers of earlier ones."""
        running = list(self._running.values())
        _kill_all(self._running)
        if running:
            await asyncio.wait(running, timeout=CLOSING_S)
        if self._started:
            await _run_in_thread(lambda: kill_tagged(MARK, f"{self._token}."))


def build_argv(command: HookCommand) -> list[str]:
    """The command to start: a shell with its line, or the program with its arguments."""
    if command.args is not None:
        return [command.command, *command.args]
    if command.shell == "powershell":
        program = _find_shell(command.shell)
        return [program, "-NoProfile", "-NonInteractive", "-Command", command.command]
    argv = [_find_shell(command.shell), "-c", command.command]
    return [*command.prefix, shlex.join(argv)] if command.prefix else argv


def _find_shell(shell: ShellName) -> str:
    if shell == "sh":
        return "/bin/sh"
    if shell == "powershell":
        return shutil.which("pwsh") or "pwsh"
    return shutil.which("bash") or "/bin/bash"


def _kill_all(running: dict[HookProcess, asyncio.Future[HookProcessResult]]) -> None:
    for process in list(running):
        process.kill()


def _run_in_thread(work: Callable[[], T]) -> "asyncio.Future[T]":
    """Run work in its own thread, so that hooks do not block other work."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[T] = loop.create_future()

    def settle(take: Callable[[], T]) -> None:
        if outcome.done():
            return
        try:
            outcome.set_result(take())
        except (OSError, ValueError, RuntimeError) as error:
            outcome.set_exception(error)
            # The caller may have stopped waiting, which is not an error.
            outcome.exception()

    def do() -> None:
        take: Callable[[], T] = _died
        try:
            value = work()
            take = lambda: value  # noqa: E731 - a value in a box
        except (OSError, ValueError) as problem:
            take = _make_raiser(problem)
        finally:
            # The loop may be gone before the work is done.
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, take)

    threading.Thread(target=do, daemon=True, name="handaxe-hook").start()
    return outcome


def _make_raiser(problem: Exception) -> Callable[[], Never]:
    def take() -> Never:
        raise problem

    return take


_died = _make_raiser(RuntimeError("its thread ended unexpectedly"))
