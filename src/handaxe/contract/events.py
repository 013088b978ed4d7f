"""Everything that happens in a session, as one union.

The same values are emitted to listeners, written to the log, streamed to front ends and
rendered; there is no second list of events anywhere.
"""

from typing import Annotated, Any, Literal

import msgspec

from handaxe.contract.decision import DecidedBy, Decision, PermissionRequest
from handaxe.contract.job_state import JobState
from handaxe.contract.messages import (
    AssistantBlock,
    AssistantMessage,
    StopReason,
    TokenUsage,
    UserMessage,
)
from handaxe.contract.permission_updates import PermissionChange
from handaxe.contract.result import ToolResult, to_plain_struct

TodoStatus = Literal["pending", "in_progress", "completed"]


class Todo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Something to do, and how far it is."""

    content: Annotated[str, "What to do, such as `Run the tests`."]
    status: Annotated[TodoStatus, "How far it is."]
    active_form: Annotated[str, "The task in the present continuous: `Running the tests`."]


class JsonEvent(msgspec.Struct, frozen=True):
    """An event that can be converted to JSON."""

    def to_json(self) -> dict[str, Any]:
        """The event as JSON data: `type`, which is its name in snake case, then its fields."""
        fields = {name: to_plain_struct(getattr(self, name)) for name in self.__struct_fields__}
        return {"type": to_event_type(type(self)), **fields}


def to_event_type(event: type[JsonEvent]) -> str:
    """The `type` of an event in JSON: `call_started` for `CallStarted`."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event.__name__).lstrip("_")


class _Event(JsonEvent, frozen=True, tag_field="type", kw_only=True):
    at: float = 0.0
    """Seconds since the epoch."""


class SessionStarted(_Event, frozen=True, tag="session_started", kw_only=True):
    """A session made its first call; where it works and how."""

    session_id: str
    root: str
    mode: str
    version: str


class SessionResumed(_Event, frozen=True, tag="session_resumed", kw_only=True):
    """A session was opened again; what had to be repaired in its log."""

    session_id: str
    version: str
    repairs: tuple[str, ...] = ()


class SessionClosed(_Event, frozen=True, tag="session_closed", kw_only=True):
    """The session ended in order."""


class CallStarted(_Event, frozen=True, tag="call_started", kw_only=True):
    """A call was parsed and starts."""

    call_id: str
    tool: str
    input: Any
    derived: dict[str, Any] = {}
    """Facts that observers may need beside the input, such as resolved paths."""
    is_read_only: bool = False
    parent_id: str | None = None
    """The call that it was made in, by a tool, a hook or a callback."""
    display_name: str | None = None
    """The name that users see for the tool, if it differs from the tool's name."""


class CallDerived(_Event, frozen=True, tag="call_derived", kw_only=True):
    """A tool told observers more of a call than its input; the model does not get it."""

    call_id: str
    derived: dict[str, Any]


class CallAsked(_Event, frozen=True, tag="call_asked", kw_only=True):
    """A human is being asked whether the call may run."""

    call_id: str
    tool: str
    reason: str
    rule: str | None = None
    request: PermissionRequest | None = None
    """Everything that the user gets to see, so that the answer can come later."""
    digest: str = ""
    """The digest of the question. An answer is only valid for the same digest."""


class CallDecided(_Event, frozen=True, tag="call_decided", kw_only=True):
    """The answer to a question, kept with its call."""

    call_id: str
    decision: Decision


class CallProgress(_Event, frozen=True, tag="call_progress", kw_only=True):
    """A running call says how far it is; shown, not logged."""

    call_id: str
    tool: str
    text: str
    data: Any = None
    """The progress as data."""


class CallFinished(_Event, frozen=True, tag="call_finished", kw_only=True):
    """A call has its one result."""

    call_id: str
    result: ToolResult


class CallDeferred(_Event, frozen=True, tag="call_deferred", kw_only=True):
    """The call was deferred: it did not run, and is made when the work continues."""

    call_id: str


HookOutcome = Literal[
    "silent", "added", "changed", "allowed", "asked", "deferred", "denied", "blocked", "stopped",
    "failed", "timed_out",
]  # fmt: skip


class HookRan(_Event, frozen=True, tag="hook_ran", kw_only=True):
    """A hook was asked; what it said and changed, and how long it took."""

    event: str
    """The event that the hook ran for: `PreToolUse`, `SessionStart`, ..."""
    hook: str
    matcher: str = ""
    call_id: str | None = None
    outcome: HookOutcome
    reason: str = ""
    """Why it refused, stopped or failed."""
    input: dict[str, Any] | None = None
    """The input that it put in place of the call's own."""
    messages: tuple[str, ...] = ()
    """Messages that it added for the model."""
    told: tuple[str, ...] = ()
    """Messages for the user at the screen."""
    sequence: str = ""
    """Text for the terminal itself: a title, a notice, the bell."""
    in_background: bool = False
    duration_ms: float = 0.0
    skill: str = ""
    """The file of the skill that brought the hook."""


class FileSeen(_Event, frozen=True, tag="file_seen", kw_only=True):
    """The session has seen (part of) a version of a file."""

    path: str
    digest: str
    size_bytes: int
    mtime_ns: int
    total_lines: int | None = None
    lines: tuple[tuple[int, int], ...] = ()
    """Seen line ranges, first and last inclusive; empty means the whole file."""
    shown: tuple[tuple[int, int], ...] = ()
    """The lines that this call showed with numbers and tags."""
    moved: tuple[tuple[int, int, int, str], ...] | None = None
    """Changes of shown lines: first line, number removed, number added, tags of those removed."""


class FileForgotten(_Event, frozen=True, tag="file_forgotten", kw_only=True):
    """A file is gone; what was seen of it no longer counts."""

    path: str


class EditApplied(_Event, frozen=True, tag="edit_applied", kw_only=True):
    """A replacement was made, so that asking for it again can be answered."""

    path: str
    fingerprint: str


class DirectoryChanged(_Event, frozen=True, tag="directory_changed", kw_only=True):
    """The session's working directory moved."""

    path: str


class JobStarted(_Event, frozen=True, tag="job_started", kw_only=True):
    """Background work started."""

    job: JobState


class JobEnded(_Event, frozen=True, tag="job_ended", kw_only=True):
    """Background work is over; exactly one per `JobStarted`, after a restart at the latest."""

    job: JobState
    summary: str


class JobSaid(_Event, frozen=True, tag="job_said", kw_only=True):
    """A watched command printed a line; shown, and told to the model."""

    job_id: str
    line: str
    is_kept: bool = True
    """Whether it is logged; one that finds many others waiting is in the output file alone."""


class MessagePosted(_Event, frozen=True, tag="message_posted", kw_only=True):
    """An agent sent a message to the main agent, which gets it when it can."""

    message_id: str
    text: str


class JobsTold(_Event, frozen=True, tag="jobs_told", kw_only=True):
    """The model got the end of these jobs, or the other messages with these ids."""

    job_ids: tuple[str, ...]
    """The id of a job: its end. With a colon behind it: its lines so far. Others are messages."""


class ModeChanged(_Event, frozen=True, tag="mode_changed", kw_only=True):
    """The permission mode was switched."""

    mode: str


class PermissionsChanged(_Event, frozen=True, tag="permissions_changed", kw_only=True):
    """The approval of a call changed permissions as well."""

    call_id: str
    by: DecidedBy
    changes: tuple[PermissionChange, ...] = ()
    not_made: tuple[str, ...] = ()
    """Further changes that were refused, with the reasons."""


class TodosChanged(_Event, frozen=True, tag="todos_changed", kw_only=True):
    """The todo list, as it now stands."""

    todos: tuple[Todo, ...]


class StateChanged(_Event, frozen=True, tag="state_changed", kw_only=True):
    """The state of an own tool after a call."""

    call_id: str
    name: str
    """The name of its type, with that of its module."""
    value: Any


class BriefChanged(_Event, frozen=True, tag="brief_changed", kw_only=True):
    """Short answers were switched on or off."""

    enabled: bool


class ToolsLoaded(_Event, frozen=True, tag="tools_loaded", kw_only=True):
    """Deferred tools whose schemas the model has now, in the order they came."""

    names: tuple[str, ...]


class ToolsOffered(_Event, frozen=True, tag="tools_offered", kw_only=True):
    """The definitions that go with every request from now on, and about how many tokens each is."""

    definitions: dict[str, int]


class WebSource(msgspec.Struct, frozen=True, kw_only=True):
    """A page of the web that a session used, so that an answer can cite it."""

    url: str
    title: str
    tool: Literal["WebFetch", "WebSearch"]
    query: str = ""
    """The search query, if a search found the page."""


class SourcesFound(_Event, frozen=True, tag="sources_found", kw_only=True):
    """Pages of the web that the session had not used before."""

    sources: tuple[WebSource, ...]


class SkillInvoked(_Event, frozen=True, tag="skill_invoked", kw_only=True):
    """The text of a skill entered the conversation; compaction puts it back."""

    name: str
    text: str


class SkillHooksEntered(_Event, frozen=True, tag="skill_hooks_entered", kw_only=True):
    """The hooks of a skill count from here to the end of the session."""

    name: str
    path: str


class WishRefused(_Event, frozen=True, tag="wish_refused", kw_only=True):
    """A file of the project was used, and what it wants to do was not granted."""

    file: str
    reason: str
    """The request, the change since the project was trusted, and the remedy."""


class InstructionsHeard(_Event, frozen=True, tag="instructions_heard", kw_only=True):
    """Instruction files apply from now on, because the agent read a file that they are for."""

    paths: tuple[str, ...]


class SettingsChanged(_Event, frozen=True, tag="settings_changed", kw_only=True):
    """Settings files changed while the session ran, and what they say is in force."""

    files: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    """Problems of the files that they did not have before."""


class UserSaid(_Event, frozen=True, tag="user_said", kw_only=True):
    """Something was said to the model: by a person, or by the runtime in a reminder."""

    message_id: str
    message: UserMessage
    notices: tuple[str, ...] = ()
    """Messages of background work in this prompt, with ids as in `JobsTold`."""


class AssistantSaid(_Event, frozen=True, tag="assistant_said", kw_only=True):
    """Finished parts of an answer; a call is recorded here before it starts."""

    message_id: str
    content: tuple[AssistantBlock, ...]


class AssistantEnded(_Event, frozen=True, tag="assistant_ended", kw_only=True):
    """An answer is over; one that lacks this was cut off."""

    message_id: str
    stop_reason: StopReason
    usage: TokenUsage = TokenUsage()
    model: str = ""


class Compacted(_Event, frozen=True, tag="compacted", kw_only=True):
    """The conversation was made shorter; from here on these messages stand for all before."""

    trigger: Literal["auto", "manual", "too_long", "rewound"]
    """`rewound`: the user went back to an earlier message."""
    method: Literal["shortened", "summarized", "cut"]
    tokens_before: int
    tokens_after: int
    messages: tuple[UserMessage | AssistantMessage, ...]


class RunEnded(_Event, frozen=True, tag="run_ended", kw_only=True):
    """The agent finished its task or failed."""

    subtype: str
    terminal_reason: str
    turns: int
    usage: TokenUsage = TokenUsage()
    cost_usd: float | None = None
    errors: tuple[str, ...] = ()


class AgentChosen(_Event, frozen=True, tag="agent_chosen", kw_only=True):
    """The chosen model and agent of the session; they stay after a resume."""

    model: str = ""
    """As `--model` takes it."""
    agent: str = ""
    """The type of agent that leads the session."""


class AgentStarted(_Event, frozen=True, tag="agent_started", kw_only=True):
    """A subagent started or continued."""

    agent_id: str
    agent_type: str
    description: str
    name: str | None = None
    call_id: str | None = None
    in_background: bool = False


class AgentEnded(_Event, frozen=True, tag="agent_ended", kw_only=True):
    """A sub-agent is done for now; a message can wake it."""

    agent_id: str
    status: Literal["completed", "failed", "killed"]
    summary: str = ""


class McpServerChanged(_Event, frozen=True, tag="mcp_server_changed", kw_only=True):
    """A server of other people's tools was reached, lost or given up, or offers other tools."""

    server: str
    status: Literal["connected", "failed", "needs-auth", "pending", "disabled"]
    error: str | None = None
    tools: int = 0
    """How many tools it offers."""


Event = (
    SessionStarted
    | SessionResumed
    | SessionClosed
    | CallStarted
    | CallDerived
    | CallAsked
    | CallDecided
    | CallProgress
    | CallFinished
    | CallDeferred
    | HookRan
    | FileSeen
    | FileForgotten
    | EditApplied
    | DirectoryChanged
    | JobStarted
    | JobEnded
    | JobSaid
    | JobsTold
    | MessagePosted
    | ModeChanged
    | PermissionsChanged
    | TodosChanged
    | StateChanged
    | BriefChanged
    | ToolsLoaded
    | ToolsOffered
    | SourcesFound
    | SkillInvoked
    | SkillHooksEntered
    | WishRefused
    | InstructionsHeard
    | SettingsChanged
    | UserSaid
    | AssistantSaid
    | AssistantEnded
    | Compacted
    | RunEnded
    | AgentChosen
    | AgentStarted
    | AgentEnded
    | McpServerChanged
)
