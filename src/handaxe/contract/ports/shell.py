"""Run shell commands and own every process they start."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Literal

import msgspec

from handaxe.contract.ports.jobs import Job
from handaxe.contract.readable_files import ReadableFiles

Ended = Literal["exit", "signal", "stopped", "time_up", "output_cap", "own_output"]


class Socket(msgspec.Struct, frozen=True, kw_only=True):
    """A web socket to listen to: the host that was judged, and the address as it was given."""

    url: str
    host: str
    port: int
    protocols: tuple[str, ...] = ()
    """Subprotocols to offer; if there are some, the server has to take one."""


class ShellCommand(msgspec.Struct, frozen=True, kw_only=True):
    """The exact string to run in one shell, as it was checked."""

    call_id: str
    command: str
    description: str = ""
    cwd: str
    env: Mapping[str, str] = {}
    """Variables of the command besides the session's own environment."""
    unconfined: bool = False
    """Asked for and allowed to run outside the sandbox."""
    kind: Literal["shell", "monitor"] = "shell"
    """Who follows a `monitor` hears its standard output alone, and that from the beginning."""
    socket: Socket | None = None
    """To be listened to instead of running anything, one line for each frame; `command` is then
    what it is listed as."""


class CommandOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The output of a command: its start and end as text for a model, and the true totals."""

    head: str
    tail: str
    """Empty where `head` is all of it."""
    total_bytes: int
    total_lines: int
    kept_bytes: int
    """How much of it is in the file."""
    is_binary: bool = False


class CommandEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended."""

    how: Ended
    exit_code: int | None
    """The exit code of the shell, or 128 + n if a signal ended the shell."""
    signal: int | None = None
    duration_s: float
    cwd: str | None = None
    """The shell's directory at its end, if it got that far."""
    survivors: int = 0
    """Processes it had left running, which were ended."""
    notes: tuple[str, ...] = ()
    """Refusals of its sandbox, as sentences."""


class RunningCommand(Job):
    """One command under the supervisor. It ends with its call unless it goes to the background."""

    @property
    @abstractmethod
    def end(self) -> CommandEnd | None:
        """How it ended; None while it runs."""

    @abstractmethod
    def output(self, limit_chars: int) -> CommandOutput:
        """The output so far, up to this size."""

    @abstractmethod
    def let_go(self) -> None:
        """Make it background work: it may outlive the call, and its end is announced."""

    @abstractmethod
    async def stop(self, *, time_is_up: bool = False) -> None:
        """End it with everything it started, on request or after its timeout."""

    @abstractmethod
    def follow(self, listener: Callable[[bytes], None]) -> Callable[[], None]:
        """Get every piece of output as it comes; calling the result ends that."""


class ConfinementLevel(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How far commands are kept apart from this machine; a small value for results."""

    means: Literal["bubblewrap", "landlock", "none"]
    network: Literal["off", "listed", "open"]
    files: Literal["roots", "open"]
    """`roots`: only the working directories and a private directory can be written to."""
    notes: tuple[str, ...] = ()
    """The requested limits that are not enforced, as sentences."""


def _report_nothing() -> tuple[str, ...]:
    return ()


class AssistedSpawn(msgspec.Struct, frozen=True):
    """How a worker that does a part of the confining itself starts a program, which is cheaper.

    It lends its own network, or has a `plan` for a child of its own.
    """

    argv: list[str]
    door: int | None = None
    """Inherited descriptor that passes on a listening socket first."""
    port: int = 0
    plan: tuple[int, int] | None = None
    """Inherited descriptors of the Landlock plan and of the call filter."""


class ConfinedCommand(msgspec.Struct):
    """How to start a program so that it is confined; to be closed after its end."""

    argv: list[str]
    env: dict[str, str]
    pass_fds: tuple[int, ...] = ()
    """Descriptors the program inherits under the same numbers."""
    close: Callable[[], tuple[str, ...]] = _report_nothing
    """Clean up after the program's end; what it was refused, as sentences. Twice is fine."""
    is_confined: bool = True
    lent: AssistedSpawn | None = None
    """The same for who can help; None where there is nothing to help with."""


class Confiner(ABC):
    """Puts programs into the operating system's sandbox."""

    @property
    @abstractmethod
    def level(self) -> ConfinementLevel:
        """The restrictions of confined programs."""

    @abstractmethod
    def is_confining(self, command: str, *, unconfined: bool = False) -> bool:
        """Whether this command would run inside; what auto-allowing rests on."""

    def get_readable_files(self) -> ReadableFiles | None:
        """The paths that confined programs can read, or None if reading is not limited."""
        return None

    def explain_closed_host(self, host: str) -> str | None:  # noqa: ARG002 - nothing is closed by default
        """Why nothing that is started here may connect to a host; None if it may."""
        return None

    @abstractmethod
    def confine(
        self,
        argv: list[str],
        *,
        cwd: str,
        env: dict[str, str],
        unconfined: bool = False,
        command: str | None = None,
    ) -> ConfinedCommand:
        """How to start `argv`; a `ToolFault` where it must be confined and cannot be.

        `unconfined` asks for no sandbox, which settings may forbid. `command` is the text that
        was judged, by which commands that settings exclude are known.
        """


class Shell(ABC):
    """Runs commands on this machine and always ends them."""

    def get_ready(self) -> None:  # noqa: B027 - not everybody has something to prepare
        """A command is coming soon: what has to be started once may start now."""

    @abstractmethod
    async def start(self, command: ShellCommand) -> RunningCommand:
        """Start it; a `ToolFault` where it cannot be started as asked, nothing having run."""

    async def get_environment(
        self,
        cwd: str,  # noqa: ARG002 - not known by default
    ) -> Mapping[str, str]:
        """The variables that commands in a directory find."""
        return {}

    async def seek(self, program: str, cwd: str) -> str:  # noqa: ARG002 - cannot by default
        """Search again for a missing program and return a sentence about it, or an empty text.

        Where it is found, later commands find it too.
        """
        return ""

    @property
    def removed_variables(self) -> tuple[str, ...]:
        """Variables of the user that commands do not get because they look like secrets."""
        return ()
