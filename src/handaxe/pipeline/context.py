"""Everybody the pipeline works with, joined by `handaxe.app`."""

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
    """Bounded looks at the disk; None stands for more than the bound."""

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
        """What an absolute glob names now."""
        ...

    def has_link(self, path: str, *, is_archive: bool) -> bool:
        """Whether a tree or an archive is or holds a link, or cannot be looked at whole."""
        ...

    def is_directory(self, path: str) -> bool:
        """Whether a directory stands there, links followed."""
        ...

    def is_link(self, path: str) -> bool:
        """Whether the path is a link or goes through one."""
        ...

    def resolve_links(self, path: str) -> str:
        """Where the links of a path lead."""
        ...

    def find_named(
        self,
        path: str,
        is_named: Callable[[str], bool],
        *,
        shown_only: bool = False,
        without: Sequence[str] = (),
    ) -> str | None:
        """The first file below a directory whose name fits; empty for none."""
        ...

    def find_tracked_env_file(
        self,
        directory: str,
        is_named: Callable[[str], bool],
        *,
        past: bool,
        paths: Sequence[str] = (),
    ) -> str | None:
        """A file with such a name that git tracks, or ever did; empty for none."""
        ...


class CommandProbes(msgspec.Struct, frozen=True):
    """What the machine knows of commands that their text does not say."""

    count_commands: Callable[[str], int | None] | None = None
    """A second reader, asked in a thread before a compound command is allowed for its content."""
    git_doubt: Callable[[str], Awaitable[str]] = _find_no_doubt
    """Which program the repository around a directory would make git run; empty for none."""
    project_programs: Callable[[str], Awaitable[frozenset[str]]] = _find_no_programs
    """Names under which commands in a directory find a program of the project."""
    sandbox: "Callable[[CommandSubject], ReadableFiles | None]" = lambda _: None
    """What a command can read inside the sandbox that answers for it; None where none does."""
    disk: Callable[[], DiskProbe] | None = None
    """Bounded looks at what a command would find, loaded when the first one is made."""


class PipelineContext(msgspec.Struct):
    """What the stages reach; the tools themselves reach only `ports`."""

    session_id: str
    catalog: Catalog
    ports: MutableMapping[type[Any], Any]
    """Ports and state objects by type, as tools ask for them."""
    workdir: Workdir
    files: Files
    policy: Callable[[], Policy]
    """The rules in force now."""
    hooks: Hooks
    emit: "Callable[[Event], asyncio.Future[None] | None]"
    """Tells an event; what comes back, if anything, is done when it is in the log."""
    results: ResultStore
    redactor: Redactor = msgspec.field(default_factory=Redactor)
    """Takes secrets out of results, once, before anybody sees them."""
    deferral: Deferral | None = None
    """Which tools wait to be loaded."""
    asker: Asker | None = None
    classifier: "LimitedClassifier | None" = None
    """The host's, which answers in a person's place in `auto` mode."""
    model_classifier: "LimitedClassifier | None" = None
    """The session's model in the same role, made when the first call asks it."""
    remarks: list[str] = msgspec.field(default_factory=list[str])
    """What hooks said of results for the classifier, the newest last."""
    checkpoints: Checkpoints | None = None
    outliving: dict[asyncio.Task[Any], str] = msgspec.field(
        default_factory=dict[asyncio.Task[Any], str]
    )
    """Work that goes on although its call is over; shared with agents and tools that call."""
    opening: Callable[[], Awaitable[None]] | None = None
    """What every call waits for before it goes on: hooks that are told of the session's start."""
    call_inside: CallInside | None = None
    """Makes a call for the tool of another one; None: there is no session to make it in."""
    ask_model: "Callable[[str, ModelQuestion], Awaitable[str]] | None" = None
    """Asks a model for the tool of a call."""
    elicit: Callable[[str, str, Any], Awaitable[Any]] | None = None
    """Asks a person for the tool of a call."""
    forms: "FormPresenter | None" = None
    """Who shows forms to a person."""
    agent: "AgentAccess | None" = None
    """The agent that makes the calls; None where a program makes them itself."""
    open_model: "Callable[[str], Model] | None" = None
    """Opens a model by its name, once."""
    questions: PendingQuestions = msgspec.field(default_factory=PendingQuestions)
    """Permission questions about unfinished calls, and answers that came later."""
    may_put_off: Callable[[str], Awaitable[bool]] | None = None
    """Whether the work can stop before this call and go on with it later; None: never."""
    commands: CommandProbes = CommandProbes()
    transcript_path: str = ""
    """Where the session's log is, for hooks."""
    agent_transcript_path: str = ""
    """Where a sub-agent's own log is."""
    agent_id: str | None = None
    """Which sub-agent makes the calls; None for the main one."""
    agent_type: str | None = None
    """The type of the agent at work, where one was chosen."""
    prompt_id: str | None = None
    """Which prompt of a person is being worked on."""
    effort: str | None = None
    """How hard the model tries."""

    @property
    def permission_mode(self) -> str:
        """The mode in force now."""
        return self.policy().mode

    @property
    def current_directory(self) -> str:
        """Where the session or agent works now."""
        return self.workdir.current
