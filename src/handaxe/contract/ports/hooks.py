"""Run the programs and reach the servers that are configured as hooks.

`handaxe.hooks` interprets a hook's answer; here it is only started, fed, read and ended.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal

import msgspec

ShellName = Literal["sh", "bash", "powershell"]


class HookUnreachable(Exception):
    """A program or a server could not be reached, or did not answer in time."""

    def __init__(self, sentence: str, *, timed_out: bool = False) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.timed_out = timed_out


class HookCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A program to run for one event."""

    command: str
    """A line for a shell; with `args` the program itself."""
    args: tuple[str, ...] | None = None
    """Given, even empty: no shell is involved."""
    shell: ShellName = "sh"
    prefix: tuple[str, ...] = ()
    """A program with its first arguments that a shell's line is handed to instead."""
    cwd: str
    env: Mapping[str, str] = {}
    """Variables of its environment besides the few harmless ones that every hook gets."""
    env_names: tuple[str, ...] = ()
    """Variables of this process that it finds too, names or patterns."""
    timeout_s: float
    variables: Mapping[str, str] | None = None
    """Variables that hooks set for commands of the session. If given, the hook may set more."""


class HookCommandResult(msgspec.Struct, frozen=True):
    """The exit of a program and its output, shortened if it is too long."""

    exit_code: int
    stdout: bytes
    stderr: bytes
    variables: Mapping[str, str | None] = {}
    """Variables that it set for later commands. None removes a variable."""


class HookRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A server to send one event to."""

    url: str
    headers: Mapping[str, str] = {}
    env_names: tuple[str, ...] = ()
    """The variables that a header may contain as `$NAME`; any other becomes empty."""
    env: Mapping[str, str] = {}
    """Variables of the session, which count before those of the process."""
    timeout_s: float


class HookResponse(msgspec.Struct, frozen=True):
    """The answer of a server, cut if it is too long."""

    status: int
    body: bytes


class HookPrograms(ABC):
    """Starts a hook's program and reaches a hook's server."""

    @abstractmethod
    async def run(self, command: HookCommand, stdin: bytes) -> HookCommandResult:
        """Wait for the program; cancelling ends it and all it started.

        Raises:
            HookUnreachable: it could not be started, or its time was up.
        """

    @abstractmethod
    async def post(self, request: HookRequest, body: bytes) -> HookResponse:
        """Send the event as JSON and wait for the answer.

        Raises:
            HookUnreachable: there was no answer in time.
        """

    @abstractmethod
    async def close(self) -> None:
        """End whatever still runs."""


class HookQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """The facts that a hook gets about one event."""

    prompt: str
    """The hook's own words with the event in them."""
    model: str | None = None
    """Who is to answer; None: the model of the session's agent."""
    may_look: bool = False
    """Whether an agent with tools that change nothing answers, not the model alone."""
    cwd: str = ""
    """Where such an agent begins to look."""


class HookModels(ABC):
    """Answers the question of a prompt or agent hook."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The model that answers where a hook names none."""

    @abstractmethod
    async def answer(self, question: HookQuestion) -> str:
        """The last text of the answer; cancelling stops the work on it.

        Raises:
            HookUnreachable: of `handaxe.contract.ports.hooks`; no model could answer.
        """
