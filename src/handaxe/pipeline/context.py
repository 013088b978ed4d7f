"""The collaborators of the pipeline, assembled by `handaxe.app`."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.catalog.deferral import Deferral
from handaxe.contract.context import CallInside
from handaxe.contract.events import Event
from handaxe.contract.permission_subjects import CommandSubject
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.permission import Asker
from handaxe.contract.ports.result_store import ResultStore
from handaxe.contract.ports.undo import Checkpoints
from handaxe.hooks.service import Hooks
from handaxe.permission.decide import Policy
from handaxe.session.pending_questions import PendingQuestions
from handaxe.session.workdir import Workdir
from handaxe.text.redact import Redactor

if TYPE_CHECKING:
    from handaxe.contract.ports.conversation import AgentAccess, ModelQuestion
    from handaxe.contract.ports.model import Model
    from handaxe.contract.ports.questions import FormPresenter
    from handaxe.contract.readable_files import ReadableFiles
    from handaxe.permission.classifier import LimitedClassifier


async def _find_no_doubt(_cwd: str) -> str:
    return ""


async def _find_no_programs(_cwd: str) -> frozenset[str]:
    return frozenset()


class DiskProbe(Protocol):
    """Limited reads of the disk; None means that the limit was exceeded."""

    def list_tree(self, path: str) -> list[str] | None:
        """Every name below a directory, relative to it."""
        ...

    def list_archive(self, path: str) -> list[str] | None:
        """Every name in an archive."""
        ...

    def list_names(self, argv: Sequence[str], cwd: str, *, null: bool) -> list[str] | None:
        """The names that a listing command prints."""
        ...

    def expand_glob(self, pattern: str) -> list[str] | None:
        """The paths that an absolute glob matches now."""
        ...

    def has_link(self, path: str, *, is_archive: bool) -> bool:
        """Whether a tree or archive contains a link, or cannot be read completely."""
        ...

    def is_directory(self, path: str) -> bool:
        """Whether the path is a directory, with links resolved."""
        ...

    def is_link(self, path: str) -> bool:
        """Whether the path is a link or goes through one."""
        ...

    def resolve_links(self, path: str) -> str:
        """The path with links resolved."""
        ...

    def find_named(
        self,
        path: str,
        is_named: Callable[[str], bool],
        *,
        shown_only: bool = False,
        without: Sequence[str] = (),
    ) -> str | None:
        """The first file below a directory with a matching name; empty for none."""
        ...

    def find_tracked_env_file(
        self,
        directory: str,
        is_named: Callable[[str], bool],
        *,
        past: bool,
        paths: Sequence[str] = (),
    ) -> str | None:
        """A file with a matching name in the git index or history; empty for none."""
        ...


class CommandProbes(msgspec.Struct, frozen=True):
    """Facts about the machine for the decision on commands."""

    find_cross_check: Callable[[], Callable[[str], int | None] | None] = lambda: None
    """A third parser, called in a thread before a compound command is allowed."""
    git_doubt: Callable[[str], Awaitable[str]] = _find_no_doubt
    """Which program the repository around a directory would make git run; empty for none."""
    project_programs: Callable[[str], Awaitable[frozenset[str]]] = _find_no_programs
    """Names under which commands in a directory find a program of the project."""
    sandbox: "Callable[[CommandSubject], ReadableFiles | None]" = lambda _: None
    """The files that a sandboxed command can read; None if no sandbox confines it."""
    disk: Callable[[], DiskProbe] | None = None
    """Limited reads of the disk, loaded on first use."""


class PipelineContext(msgspec.Struct):
    """Everything the stages can reach; tools reach only `ports`."""

    session_id: str
    catalog: Catalog
    ports: MutableMapping[type[Any], Any]
    """Ports and state objects by type."""
    workdir: Workdir
    files: Files
    policy: Callable[[], Policy]
    """The current rules."""
    hooks: Hooks
    emit: "Callable[[Event], asyncio.Future[None] | None]"
    """Emits an event; the returned future, if any, is done when the event is in the log."""
    results: ResultStore
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Removes secrets from results before anything uses them."""
    deferral: Deferral | None = None
    """The deferred tools."""
    asker: Asker | None = None
    classifier: "LimitedClassifier | None" = None
    """The host's classifier for `auto` mode."""
    model_classifier: "LimitedClassifier | None" = None
    """The session's model as classifier, created on first use."""
    remarks: list[str] = msgspec.field(default_factory=list[str])
    """Remarks of hooks about results, for the classifier, newest last."""
    checkpoints: Checkpoints | None = None
    outliving: dict[asyncio.Task[Any], str] = msgspec.field(
        default_factory=dict[asyncio.Task[Any], str]
    )
    """Work that continues after its call; shared with subagents and nested calls."""
    opening: Callable[[], Awaitable[None]] | None = None
    """The SessionStart hooks, which every call waits for."""
    call_inside: CallInside | None = None
    """Makes a call inside another one; None without a session."""
    ask_model: "Callable[[str, ModelQuestion], Awaitable[str]] | None" = None
    """Asks a model on behalf of a call."""
    elicit: Callable[[str, str, Any], Awaitable[Any]] | None = None
    """Asks the user on behalf of a call."""
    forms: "FormPresenter | None" = None
    """Shows forms to the user."""
    agent: "AgentAccess | None" = None
    """The agent that makes the calls; None if a program makes them."""
    open_model: "Callable[[str], Model] | None" = None
    """Opens a model by name, once."""
    questions: PendingQuestions = msgspec.field(default_factory=PendingQuestions)
    """Permission prompts of unfinished calls, and later answers."""
    may_put_off: Callable[[str], Awaitable[bool]] | None = None
    """Whether the work can stop before this call and continue with it later; None: never."""
    commands: CommandProbes = CommandProbes()
    transcript_path: str = ""
    """The path of the session's log, for hooks."""
    agent_transcript_path: str = ""
    """The path of a subagent's log."""
    agent_id: str | None = None
    """The subagent that makes the calls; None for the main agent."""
    agent_type: str | None = None
    """The type of the agent, if one was chosen."""
    prompt_id: str | None = None
    """The id of the current user prompt."""
    effort: str | None = None
    """The reasoning effort of the model."""

    @property
    def permission_mode(self) -> str:
        """The current permission mode."""
        return self.policy().mode

    @property
    def current_directory(self) -> str:
        """The current directory of the session or agent."""
        return self.workdir.current
