"""How a piece of background work stands."""

from typing import Literal

import msgspec

JobKind = Literal["shell", "monitor", "agent"]
JobStatus = Literal["running", "completed", "failed", "killed"]
EndedBy = Literal[
    "exit", "signal", "stopped", "time_up", "output_limit", "own_output", "host_ended",
    "user", "parent", "call", "limit", "session",
]  # fmt: skip
"""The cause of an end: the work itself, a signal, a request, its timeout, a limit, a loop of
reading its own output, or the end of handaxe. For an agent also: the user, the agent that started
it, the end of the call that started it, a limit of its work, or the session's end."""


class JobState(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How a piece of background work stands."""

    job_id: str
    kind: JobKind
    status: JobStatus
    description: str
    command: str | None = None
    name: str | None = None
    """For an agent: its name, if it has one."""
    agent_type: str | None = None
    """For an agent: its type."""
    call_id: str = ""
    """The call that started it, where what it changes belongs to that call."""
    output_path: str = ""
    """A file that Read accepts, growing while the work runs."""
    output_bytes: int = 0
    output_is_cut: bool = False
    """Whether more was printed than its file holds; the end comes when it has ended."""
    exit_code: int | None = None
    signal: int | None = None
    ended_by: EndedBy | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    last_active_at: float | None = None
    """For an agent: the time of its last activity."""
    result: str = ""
    """A short text about the outcome, if the output is longer."""
    waiting_for_input: str | None = None
    """The last line of a program that seems to wait for input."""
