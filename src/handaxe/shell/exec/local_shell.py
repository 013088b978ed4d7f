"""The shell of one session: starts commands, lists running ones, ends all of them on close."""

import asyncio
import errno
import json
import os
import shlex
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.shell import BadCommand, BadWorkdir, ShellClosed
from handaxe.contract.ports.shell import (
    ConfinedCommand,
    Confiner,
    RunningCommand,
    Shell,
    ShellCommand,
    Socket,
)
from handaxe.process.child_environment import build_child_argv
from handaxe.process.worker_pool import WORKERS, explain_failed_start
from handaxe.shell.exec.bash_binary import BashConfig, can_be_restricted, is_plain_program
from handaxe.shell.exec.capture import FILE_FROM_BYTES, OutputCapture
from handaxe.shell.exec.command import MARK, LocalCommand, LocalCommandOptions, find_cwd_problem
from handaxe.shell.exec.environment.login_shell import LoginShell
from handaxe.shell.exec.environment.shell_snapshot import ShellSnapshot
from handaxe.shell.exec.output_quota import OutputQuota
from handaxe.shell.exec.retention import OUTPUT_SUFFIX
from handaxe.text.redact import Redactor

ANSWER_S = 10.0
"""How long the login shell may take to print its PATH."""

_MAX_ARGUMENT_BYTES = 1 << 17
_STANDARD_ERROR = 2
_PREFIXES = {"shell": "bash", "monitor": "monitor"}


class ShellLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits for the commands of a session."""

    max_file_bytes: int = 64 << 20
    """The output of one command that is stored on disk."""
    max_session_bytes: int = 1 << 30
    """The stored output of all its commands; files of ended ones are deleted first."""
    runaway_bytes: int = 5_000_000_000
    """A command with more output than this is ended."""
    file_from_bytes: int = FILE_FROM_BYTES
    """Shorter output needs no file."""


class LocalShell(Shell):
    """The commands of one session on this machine."""

    def __init__(
        self,
        directory: Path,
        *,
        environment: Mapping[str, str],
        confiner: Confiner | None = None,
        on_end: Callable[[RunningCommand], None] | None = None,
        limits: ShellLimits | None = None,
        on_written: Callable[[int], None] = lambda _: None,
        asks_login_shell: bool = False,
        bash: BashConfig | None = None,
    ) -> None:
        """Save output below `directory`.

        `on_end` is called at the end of every background command, `on_written` with every number of
        saved bytes.
        """
        self._directory = str(directory)
        self._environment = dict(environment)
        self._login_shell = LoginShell(self._environment, self._ask) if asks_login_shell else None
        self._redactor = Redactor()
        self._removed: tuple[str, ...] = ()
        self._confiner = confiner
        self._on_end = on_end
        self._limits = limits or ShellLimits()
        self._bash = bash or BashConfig()
        self.open_trace: Callable[[str], int | None] = lambda _: None
        """As in `Checkpoints`: provides trace files for the writes of commands."""
        most = self._limits.max_session_bytes
        self._room = OutputQuota(self._directory, most, on_written=on_written)
        self._token = os.urandom(8).hex()
        self._running: dict[str, LocalCommand] = {}
        self._is_closed = False
        self._snapshot = ShellSnapshot(self._run_plain) if self._bash.with_snapshot else None

    @property
    def running(self) -> list[RunningCommand]:
        """All running commands."""
        return list(self._running.values())

    def get_ready(self) -> None:
        """Start the supervisor, which takes longer than most commands."""
        WORKERS.get_ready()

    async def start(self, command: ShellCommand) -> RunningCommand:
        """Start a command; a `ToolFault` if that is not possible, in which case nothing ran."""
        if self._is_closed:
            raise ShellClosed
        if command.socket is not None:
            return await self._listen(command, command.socket)
        _refuse_unencodable(command)
        start_file = await self._start_file()
        self._redactor.learn(self._environment)
        return await self._start(command, self._environment, start_file)

    async def seek(self, program: str, cwd: str) -> str:  # noqa: ARG002 - the same everywhere
        """Search again for a program that a command did not find; a sentence about it, or empty."""
        return "" if self._login_shell is None else await self._login_shell.seek(program)

    async def get_environment(self, cwd: str) -> Mapping[str, str]:  # noqa: ARG002 - as above
        """The variables of commands in a directory."""
        await self._start_file()
        return self._environment

    def protect_secrets(self, redactor: Redactor, removed: Iterable[str]) -> None:
        """Redact secrets in output; `removed` are the variables that commands do not get."""
        self._redactor = redactor
        self._removed = tuple(sorted(removed))

    @property
    def removed_variables(self) -> tuple[str, ...]:
        """The user's variables that commands do not get because they look like secrets."""
        return self._removed

    async def _start_file(self) -> int | None:
        snapshot = self._snapshot
        if snapshot is None:
            return None
        is_first = snapshot.path is None
        file = await snapshot.file()
        if is_first and snapshot.path is not None:
            self._environment["PATH"] = snapshot.path
        return file

    async def _start(
        self,
        command: ShellCommand,
        environment: Mapping[str, str],
        start_file: int | None = None,
    ) -> LocalCommand:
        job_id = self._make_id(command)
        mark = f"{self._token}.{job_id}"
        env = {**environment, **command.env, MARK: mark}
        is_plain = start_file is None and is_plain_program(command.command)
        start_fd = WORKERS.choose_start_fd()
        text_fd = start_fd - 2
        if not is_plain:
            env["BASH_ENV"] = f"/dev/fd/{start_fd}"
        # The shell itself is the user's, also where a project brings a bash of its own.
        path = self._environment.get("PATH", "")
        program = self._bash.found(path)
        argv = [program, "--noprofile", "--norc", "-c", "--", command.command, "bash"]
        inherited = {} if start_file is None else {start_fd: start_file}
        is_long = len(command.command) * 4 >= _MAX_ARGUMENT_BYTES
        try:
            if is_long:
                # Bash has read all of it when it runs the first command.
                inherited[text_fd] = _create_command_file(f"exec {text_fd}<&-;{command.command}")
                argv[-2] = f". /dev/fd/{text_fd}"
            if self._bash.prefix and command.call_id:
                runner = self._bash.resolve_prefix(path)
                argv = [*runner, _build_command_line(argv, env)]
            reserved = {start_fd, start_fd - 1, text_fd}
            confined = _confine(self._confiner, argv, env, command, reserved)
            terms = self._terms(job_id, mark, confined, command.cwd if is_plain else None)
            return await self._run(command, terms, confined, inherited, start_fd)
        except OSError as error:
            raise explain_failed_start(error.errno, error.strerror or str(error)) from error
        finally:
            if is_long and text_fd in inherited:
                os.close(inherited[text_fd])

    async def _listen(self, command: ShellCommand, socket: Socket) -> LocalCommand:
        """Run handaxe's own listener program, outside the sandbox."""
        job_id = self._make_id(command)
        mark = f"{self._token}.{job_id}"
        argv, env = build_listener(socket)
        outside = ConfinedCommand(argv=argv, env={**env, MARK: mark}, is_confined=False)
        terms = self._terms(job_id, mark, outside, command.cwd)
        try:
            return await self._run(command, terms, outside, {}, 0)
        except OSError as error:
            raise explain_failed_start(error.errno, error.strerror or str(error)) from error

    async def close(self) -> None:
        """End every command of this session; no new one can start."""
        self._is_closed = True
        if self._running:
            await asyncio.gather(*(one.stop() for one in list(self._running.values())))
        if self._snapshot is not None:
            self._snapshot.close()

    async def _run_plain(self, text: str, env: Mapping[str, str], timeout_s: float) -> None:
        """Run an internal command before the first command of the session."""
        await self._run_own(text, "/", {**self._environment, **env}, timeout_s)

    async def _ask(self, text: str, cwd: str, env: Mapping[str, str]) -> bytes | None:
        """The output of a user's program; None if it fails or takes too long."""
        try:
            running = await self._run_own(text, cwd, env, ANSWER_S)
        except ToolFault:
            return None
        return running.whole() if running is not None else None

    async def _run_own(
        self, text: str, cwd: str, env: Mapping[str, str], timeout_s: float
    ) -> LocalCommand | None:
        """Run an internal command; None if it did not finish in time."""
        running = await self._start(ShellCommand(call_id="", command=text, cwd=cwd), env)
        try:
            is_done = await running.wait(timeout_s)
        finally:
            if running.end is None:
                await running.stop()
        return running if is_done else None

    def _terms(
        self, job_id: str, mark: str, confined: ConfinedCommand, stays_in: str | None
    ) -> LocalCommandOptions:
        return LocalCommandOptions(
            job_id=job_id,
            mark=mark,
            output_path=self._build_output_path(job_id),
            stays_in=stays_in and os.path.realpath(stays_in),
            runaway_bytes=self._limits.runaway_bytes,
            confined=confined,
            on_settled=self._note_end,
            on_let_go=self._note_let_go,
        )

    async def _run(
        self,
        command: ShellCommand,
        terms: LocalCommandOptions,
        confined: ConfinedCommand,
        inherited: Mapping[int, int],
        start_fd: int,
    ) -> LocalCommand:
        # What we run for ourselves has no call; its output is read whole, and kept nowhere.
        is_own = not command.call_id
        capture = OutputCapture(
            "" if is_own else terms.output_path,
            self._limits.max_file_bytes,
            file_from_bytes=self._limits.file_from_bytes,
            room=self._room,
            is_heard_from_start=command.kind == "monitor",
            redactor=None if is_own else self._redactor,
        )
        running = LocalCommand(command, terms, capture)
        try:
            used = start_fd if terms.stays_in is None else 0
            self._hand_over(running, confined, inherited, used)
        except BaseException:
            confined.close()
            raise
        self._running[terms.job_id] = running
        await running.has_started()
        return running

    def _hand_over(
        self,
        running: LocalCommand,
        confined: ConfinedCommand,
        inherited: Mapping[int, int],
        start_fd: int,
    ) -> None:
        line = WORKERS.take(is_apart=confined.lent is not None and confined.lent.plan is None)
        ours: list[int] = []
        theirs: list[int] = []
        call_id = running.command.call_id
        trace = self.open_trace(call_id) if call_id else None
        try:
            for _ in range(2 if running.command.kind == "monitor" else 1):
                reading, writing = os.pipe2(os.O_CLOEXEC)
                ours.append(reading)
                theirs.append(writing)
                os.set_blocking(reading, False)
            # A monitor's standard error is stored but not sent to the model.
            errors = {_STANDARD_ERROR: theirs[1]} if len(theirs) > 1 else {}
            line.run(
                confined.argv,
                confined.env,
                running.command.cwd,
                output=theirs[0],
                inherited={**inherited, **{fd: fd for fd in confined.pass_fds}, **errors},
                start_fd=start_fd,
                lent=confined.lent,
                trace=None if trace is None else (trace, _can_restrict(running, confined)),
            )
            running.attach(line, *ours)
        except BaseException:
            line.close()
            for pipe in ours:
                os.close(pipe)
            raise
        finally:
            for pipe in theirs if trace is None else (*theirs, trace):
                os.close(pipe)

    def _note_let_go(self, running: LocalCommand) -> None:
        if running.end is not None:
            self._announce(running)

    def _note_end(self, running: LocalCommand) -> None:
        self._running.pop(running.job_id, None)
        if running.is_let_go:
            self._announce(running)

    def _announce(self, running: LocalCommand) -> None:
        if self._on_end is not None:
            # Later, so that waiters get the end first and errors stay in the callback.
            asyncio.get_running_loop().call_soon(self._on_end, running)

    def _make_id(self, command: ShellCommand) -> str:
        while True:
            job_id = f"{_PREFIXES[command.kind]}_{os.urandom(3).hex()}"
            if job_id not in self._running and not os.path.lexists(self._build_output_path(job_id)):
                return job_id

    def _build_output_path(self, job_id: str) -> str:
        return f"{self._directory}/{job_id}{OUTPUT_SUFFIX}"


def _confine(
    confiner: Confiner | None,
    argv: list[str],
    env: dict[str, str],
    command: ShellCommand,
    reserved: set[int],
) -> ConfinedCommand:
    """The command line that really runs, in the sandbox if there is one."""
    if confiner is None:
        return ConfinedCommand(argv=argv, env=env, is_confined=False)
    confined = confiner.confine(
        argv,
        cwd=command.cwd,
        env=env,
        unconfined=command.unconfined,
        command=command.command,
    )
    if reserved & set(confined.pass_fds):
        confined.close()
        raise explain_failed_start(errno.EMFILE, "")
    if confined.is_confined:
        # Inside, it would look as if the command itself had failed.
        reason = find_cwd_problem(command.cwd, is_confined=True)
        if reason is not None:
            confined.close()
            raise BadWorkdir(cwd=command.cwd, reason=reason)
    return confined


def _can_restrict(running: LocalCommand, confined: ConfinedCommand) -> bool:
    """Whether a command works without the ability to gain privileges."""
    return confined.is_confined or can_be_restricted(running.command.command)


def _refuse_unencodable(command: ShellCommand) -> None:
    if "\0" in command.command:
        raise BadCommand(what="a NUL character")
    with suppress(UnicodeEncodeError):
        os.fsencode(command.command)
        return
    raise BadCommand(what="half of a character (a lone surrogate)")


def _build_command_line(argv: list[str], env: dict[str, str]) -> str:
    """A command line for the prefix program; only the shell itself reads handaxe's first lines."""
    first = env.pop("BASH_ENV", None)
    return shlex.join(argv) if first is None else f"BASH_ENV={first} {shlex.join(argv)}"


def _create_command_file(text: str) -> int:
    """A command that is too long for an argument, as an unnamed file."""
    file = os.memfd_create("handaxe-command", os.MFD_CLOEXEC)
    with os.fdopen(os.dup(file), "wb") as writer:
        writer.write(os.fsencode(text))
    return file


OPEN_S = 15.0
"""A server that does not accept the web socket by then is given up."""
PING_S = 30.0
SILENT_S = 60.0
"""A server that does not answer pings for this long counts as lost."""
_VARIABLES = ("SSL_CERT_FILE", "SSL_CERT_DIR")
"""The certificates that the user trusts; no other variable is passed."""


def build_listener(socket: Socket) -> tuple[list[str], dict[str, str]]:
    """The program for this socket, and its environment."""
    request = {
        "url": socket.url,
        "host": socket.host.strip("[]"),
        "port": socket.port,
        "protocols": socket.protocols,
        "open_s": OPEN_S,
        "ping_s": PING_S,
        "silent_s": SILENT_S,
    }
    program = build_child_argv("handaxe.shell.exec.socket_child", ("msgspec", "websockets"))
    environment = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    return [*program, json.dumps(request)], environment
