"""The sessions on disk: list them, read one back, remove one."""

import contextlib
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.contract.content import TextBlock
from handaxe.contract.events import (
    AgentChosen,
    AssistantEnded,
    AssistantSaid,
    BriefChanged,
    CallDeferred,
    CallFinished,
    CallStarted,
    Compacted,
    DirectoryChanged,
    EditApplied,
    Event,
    FileForgotten,
    FileSeen,
    HookRan,
    InstructionsHeard,
    JobEnded,
    JobSaid,
    JobStarted,
    JobsTold,
    MessagePosted,
    ModeChanged,
    SessionClosed,
    SessionResumed,
    SessionStarted,
    SkillHooksEntered,
    SkillInvoked,
    SourcesFound,
    StateChanged,
    TodosChanged,
    ToolsLoaded,
    UserSaid,
    WebSource,
)
from handaxe.contract.faults import SetupError
from handaxe.disk.errors import DiskFault
from handaxe.disk.private import write_private
from handaxe.session.pending_questions import PendingQuestions
from handaxe.storage.event_log import LoggedEvents, append_to_log
from handaxe.storage.home import (
    get_session_directory,
    get_sessions_directory,
    get_tasks_directory,
    is_session_id,
    make_private_directory,
)
from handaxe.storage.session_lock import SessionLock, SharedSessionLock, is_session_open

LOG_NAME = "events.jsonl"
NAME_FILE = "name"
MAX_NAME_CHARS = 100
_WORDS_CHARS = 100
_SHOWN_DAMAGES = 3


class SessionSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a listing."""

    id: str = msgspec.field(name="session_id")
    root: str
    """The project; `?` where the log does not tell."""
    started_at: float
    time: float = msgspec.field(name="last_used_at")
    """When it was last used, in seconds since 1970."""
    calls: int
    failed_calls: int
    is_closed: bool
    """Whether it was closed in order."""
    name: str | None = None
    """Its name."""
    title: str = ""
    """Its name, or else how its conversation begins."""
    size: int = msgspec.field(default=0, name="size_bytes")
    """How many bytes its log, results and undo record take."""
    open: bool = msgspec.field(default=False, name="is_open")
    """Whether a process has it open now."""
    damage: tuple[str, ...] = ()
    """Damaged parts of its log and its undo record, one sentence each."""


class ConversationSummary(msgspec.Struct, frozen=True):
    """A conversation that can be resumed."""

    session_id: str
    first_words: str
    last_used_at: float


class SessionHistory(msgspec.Struct):
    """The past of a session from its log, enough to continue it."""

    started: SessionStarted | None = None
    results: dict[str, int] = {}
    """The offsets of the results of finished calls in the log."""
    calls: dict[str, CallStarted] = {}
    put_off: str | None = None
    """The call that a hook deferred."""
    questions: PendingQuestions = msgspec.field(default_factory=PendingQuestions)
    """Permission questions about calls that have no result."""
    holder: str = ""
    """The session that wrote last: a copy begins with the events of the one it was made of."""
    seen: list[FileSeen | FileForgotten] = []
    edits: list[EditApplied] = []
    said: list[UserSaid | AssistantSaid | AssistantEnded | Compacted] = []
    """The conversation since it was last made shorter; results are looked up by their ids."""
    jobs: list[JobStarted | JobEnded | JobSaid | JobsTold | MessagePosted | UserSaid] = []
    """The events of background work, its messages, and which were delivered."""
    directory: str | None = None
    mode: str | None = None
    chosen: AgentChosen | None = None
    todos: TodosChanged | None = None
    states: dict[str, Any] = {}
    """The saved state of own tools, by the names of the types."""
    brief: BriefChanged | None = None
    loaded_tools: list[str] = []
    sources: list[WebSource] = []
    skills: list[SkillInvoked] = []
    skill_hooks: list[SkillHooksEntered] = []
    skill_hooks_run: list[HookRan] = []
    """The hooks of skills that have run."""
    instructions: list[str] = []
    """Files of instructions that began to count while the agent worked."""
    is_closed: bool = False
    failed_calls: int = 0
    last_at: float = 0.0
    damage: list[str] = []

    @property
    def warnings(self) -> tuple[str, ...]:
        """The dropped parts of the log, in a sentence for the user. Usually empty."""
        if not self.damage:
            return ()
        shown = "; ".join(self.damage[:_SHOWN_DAMAGES])
        more = len(self.damage) - _SHOWN_DAMAGES
        rest = f"; and {more:,} more places" if more > 0 else ""
        how = f"The session continues without the unreadable parts of `{LOG_NAME}`"
        return (f"The log of this session was damaged. {how}: {shown}{rest}.",)

    @property
    def open_calls(self) -> list[CallStarted]:
        """Calls that were under way when the session broke off."""
        return [call for call_id, call in self.calls.items() if call_id not in self.results]

    @property
    def open_jobs(self) -> list[str]:
        """Background work, by its ids, that was going on when the session broke off."""
        going: dict[str, None] = {}
        for event in self.jobs:
            if isinstance(event, JobStarted):
                going[event.job.job_id] = None
            elif isinstance(event, JobEnded):
                going.pop(event.job.job_id, None)
        return list(going)

    def take(self, offset: int, event: Event) -> None:
        """Go one event further."""
        self.last_at = event.at
        self.is_closed = isinstance(event, SessionClosed)
        self.questions.replay(event, self.holder)
        match event:
            case SessionStarted():
                self.started = self.started or event
                self.mode = event.mode
                self.holder = event.session_id
            case SessionResumed():
                self.holder = event.session_id
            case CallStarted():
                self.calls[event.call_id] = event
                self.put_off = None
            case CallDeferred():
                # It never ran, so its id is free for the time that it does.
                self.calls.pop(event.call_id, None)
                self.put_off = event.call_id
            case CallFinished():
                self.results[event.call_id] = offset
                self.failed_calls += not event.result.ok
            case FileSeen() | FileForgotten():
                self.seen.append(event)
            case EditApplied():
                self.edits.append(event)
            case SourcesFound():
                self.sources += event.sources
            case JobStarted() | JobEnded() | JobSaid() | JobsTold() | MessagePosted():
                self.jobs.append(event)
            case UserSaid() | AssistantSaid() | AssistantEnded() | Compacted():
                # Nothing before a summary is ever sent again.
                self.said = [] if isinstance(event, Compacted) else self.said
                self.said.append(event)
                if isinstance(event, UserSaid) and event.notices:
                    self.jobs.append(event)
            case _:
                self._take_state(event)

    def _take_state(self, event: Event) -> None:
        """The remembered state of a session: the last event counts."""
        match event:
            case DirectoryChanged():
                self.directory = event.path
            case ModeChanged():
                self.mode = event.mode
            case AgentChosen():
                self.chosen = event
            case TodosChanged():
                self.todos = event
            case StateChanged():
                self.states[event.name] = event.value
            case BriefChanged():
                self.brief = event
            case ToolsLoaded():
                self.loaded_tools += event.names
            case SkillInvoked():
                self.skills.append(event)
            case SkillHooksEntered():
                self.skill_hooks.append(event)
            case HookRan() if event.skill:
                self.skill_hooks_run.append(event)
            case InstructionsHeard():
                self.instructions += event.paths
            case _:
                pass


def read_history(log: Path) -> SessionHistory:
    """The past of a session; an empty one if there is no log."""
    history = SessionHistory()
    if log.exists():
        events = LoggedEvents(log)
        for offset, event in events:
            history.take(offset, event)
        history.damage = events.damage
        _refuse_unreadable(log, events)
    return history


def list_sessions(
    home: Path, find_damage: Callable[[Path], list[str]], *, root: str | None = None
) -> list[SessionSummary]:
    """Every session of a data directory, or of one project in it; the last used first.

    `find_damage` returns what cannot be read of the undo record in a session's directory. A log
    that does not tell its project is listed for each of them.
    """
    logs = get_sessions_directory(home).glob(f"*/{LOG_NAME}")
    found = [
        _summarize_session(log, home, find_damage)
        for log in logs
        if is_session_id(log.parent.name)
        and (root is None or _read_root_if_any(log) in {None, root})
    ]
    return sorted(found, key=lambda summary: (-summary.time, summary.id))


def list_conversations(home: Path, root: str) -> Iterator[ConversationSummary]:
    """The sessions of a project in which a person said something, the last used first."""
    logs = sorted(
        get_sessions_directory(home).glob(f"*/{LOG_NAME}"),
        key=lambda log: log.stat().st_mtime,
        reverse=True,
    )
    for log in logs:
        words = _read_first_words(log, root)
        if words is not None:
            yield ConversationSummary(log.parent.name, words, log.stat().st_mtime)


def has_session(home: Path, session_id: str) -> bool:
    """Whether there is a session of this id."""
    return (get_session_directory(home, session_id) / LOG_NAME).exists()


def name_session(home: Path, session_id: str, name: str) -> None:
    """Give a session a name by which it can be found; another one may have had it before."""
    directory = get_session_directory(home, session_id)
    make_private_directory(directory)
    write_private(directory / NAME_FILE, validate_session_name(name).encode())


def read_session_name(home: Path, session_id: str) -> str | None:
    """The name of a session, if it has one."""
    return _read_name(get_session_directory(home, session_id))


def validate_session_name(name: str) -> str:
    """The name, if it can be one."""
    # What the type promises a program may not keep.
    checked = name.strip() if isinstance(cast("object", name), str) else ""
    if not checked or len(checked) > MAX_NAME_CHARS or not checked.isprintable():
        from handaxe.contract.faults.session import BadSessionTitle

        raise BadSessionTitle(max_chars=MAX_NAME_CHARS)
    return checked


def find_session(home: Path, wanted: str) -> str | None:
    """The id of the session that has this id, or this name and was used last."""
    if is_session_id(wanted) and has_session(home, wanted):
        return wanted
    logs = get_sessions_directory(home).glob(f"*/{LOG_NAME}")
    named = [log for log in logs if _read_name(log.parent) == wanted.strip()]
    newest = max(named, key=lambda log: log.stat().st_mtime, default=None)
    return newest.parent.name if newest is not None else None


def read_events(home: Path, session_id: str, damage: list[str] | None = None) -> Iterator[Event]:
    """The events of one session in order; what cannot be read is added to `damage` at the end."""
    log = find_session_directory(home, session_id) / LOG_NAME
    events = LoggedEvents(log)
    for _, event in events:
        yield event
    _refuse_unreadable(log, events)
    if damage is not None:
        damage += events.damage


def append_event(home: Path, session_id: str, event: Event) -> None:
    """Write one event to the log of a session that is not open."""
    with _convert_os_errors(f"The log of the session {session_id!r} could not be written"):
        append_to_log(find_session_directory(home, session_id) / LOG_NAME, event)


def delete_session(home: Path, session_id: str) -> None:
    """Remove a session with its log, its stored results and its list of tasks."""
    import shutil

    problem = f"The session {session_id!r} could not be deleted"
    with hold_session(home, session_id) as directory, _convert_os_errors(problem):
        shutil.rmtree(directory)
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(get_tasks_directory(home, session_id))


@contextlib.contextmanager
def hold_session(home: Path, session_id: str) -> Generator[Path]:
    """The directory of a session, which no other process opens or uses meanwhile.

    Raises:
        SessionNotFound: the session does not exist.
        SessionBusy: another process has it open, or works in it.
    """
    directory = find_session_directory(home, session_id)
    lock = SessionLock(home, session_id, is_named=True)
    try:
        others = SharedSessionLock(directory)
        if not others.enter_alone():
            from handaxe.contract.faults.session import SessionBusy

            raise SessionBusy(session_id, 0, os.getpid())
        try:
            yield directory
        finally:
            others.leave()
    finally:
        lock.release()


def fork_session(home: Path, session_id: str, fork_id: str, *, into: Path | None = None) -> None:
    """Copy a session's past under another id, to go on from there independently.

    What the original changed stays its own to undo; the copy has changed nothing yet.
    """
    import shutil

    source = find_session_directory(home, session_id)
    target = get_session_directory(into or home, fork_id)
    if target.exists():
        from handaxe.contract.faults.session import SessionExists

        raise SessionExists(session_id=fork_id)
    tasks, own_tasks = (
        get_tasks_directory(home, session_id),
        get_tasks_directory(into or home, fork_id),
    )
    try:
        with _convert_os_errors(f"The session {session_id!r} could not be copied"):
            make_private_directory(target)
            shutil.copy2(source / LOG_NAME, target / LOG_NAME)
            for folder in ("results", "agents"):
                if (source / folder).exists():
                    shutil.copytree(source / folder, target / folder)
            if tasks.exists():
                shutil.copytree(tasks, own_tasks)
    except SetupError:
        # Half a past would be taken for a whole one.
        for made in (target, own_tasks):
            shutil.rmtree(made, ignore_errors=True)
        raise


def _read_first_words(log: Path, root: str) -> str | None:
    """How a conversation of this project begins, if the log holds one; reads no more than that."""
    for _, event in LoggedEvents(log):
        if isinstance(event, SessionStarted) and event.root != root:
            return None
        if isinstance(event, UserSaid) and not event.message.synthetic:
            texts = [b.text for b in event.message.content if isinstance(b, TextBlock)]
            return " ".join(" ".join(texts).split())[:_WORDS_CHARS]
    return None


def _read_name(directory: Path) -> str | None:
    try:
        return (directory / NAME_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _read_touched_at(log: Path) -> float:
    """When a log was last written to that says nothing itself; a full disk leaves such ones."""
    try:
        return log.stat().st_mtime
    except OSError:
        return 0.0


def find_session_directory(home: Path, session_id: str, *, root: str | None = None) -> Path:
    """The directory of a session.

    Raises:
        SessionNotFound: the session does not exist.
        SessionElsewhere: its log names another project than `root`.
    """
    directory = get_session_directory(home, session_id)
    if not (directory / LOG_NAME).exists():
        from handaxe.contract.faults.session import SessionNotFound

        raise SessionNotFound(session_id=session_id)
    if root is not None:
        refuse_other_root(session_id, _read_root_if_any(directory / LOG_NAME), root)
    return directory


def refuse_other_root(session_id: str, recorded: str | None, root: str) -> None:
    """Refuse a session that belongs to another project. A log may name no project at all.

    Raises:
        SessionElsewhere: its log names another one.
    """
    if recorded is not None and recorded != root:
        from handaxe.contract.faults.session import SessionElsewhere

        raise SessionElsewhere(session_id=session_id, root=recorded, asked=root)


@contextlib.contextmanager
def _convert_os_errors(what: str) -> Generator[None]:
    """Convert errors of the system to a sentence in one line."""
    try:
        yield
    except DiskFault as error:
        raise SetupError(f"{what}: {error}.") from error
    except OSError as error:
        # Copying a tree gives all its failures in a list.
        why = error.strerror or str(error.args[0] if error.args else error)
        raise SetupError(f"{what}: {why}.") from error


def read_session_root(log: Path) -> str | None:
    """The project of a session by its log; None if it is unknown."""
    if log.exists():
        for _, event in LoggedEvents(log):
            if isinstance(event, SessionStarted):
                return event.root
    return None


def _read_root_if_any(log: Path) -> str | None:
    """The project of a session; None also where the log cannot be read at all."""
    try:
        return read_session_root(log)
    except (OSError, DiskFault, SetupError):
        return None


def _refuse_unreadable(log: Path, events: LoggedEvents) -> None:
    if not events.is_readable:
        from handaxe.contract.faults.session import SessionDamaged

        raise SessionDamaged(log=str(log), why=events.damage[0])


def _summarize_session(
    log: Path, home: Path, find_damage: Callable[[Path], list[str]]
) -> SessionSummary:
    name, title = _read_name(log.parent), ""
    try:
        history = read_history(log)
        title = _read_first_words(log, history.started.root) if history.started else None
        damage = [*history.damage, *find_damage(log.parent)]
    except (OSError, DiskFault, SetupError) as error:
        # One bad log hides no other session.
        history, damage = SessionHistory(), [str(error)]
    last_at = history.last_at or _read_touched_at(log)
    return SessionSummary(
        id=log.parent.name,
        root=history.started.root if history.started else "?",
        started_at=history.started.at if history.started else last_at,
        time=last_at,
        calls=len(history.calls),
        failed_calls=history.failed_calls,
        is_closed=history.is_closed,
        name=name,
        title=name or title or "",
        size=_measure_directory(log.parent),
        open=is_session_open(home, log.parent.name),
        damage=tuple(damage),
    )


def _measure_directory(directory: Path) -> int:
    """The bytes of the files in a directory; files that disappear are not counted."""
    total = 0
    for place, _, names in os.walk(directory):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{place}/{name}").st_size
    return total


class SessionTitle:
    """Reads and writes it."""

    def __init__(self, home: Path, session_id: str) -> None:
        self._home = home
        self._session_id = session_id

    def read(self) -> str | None:
        """The name, if it has one."""
        return read_session_name(self._home, self._session_id)

    def write(self, text: str) -> None:
        """Set the name from a hook: in one line, not too long; empty names are ignored."""
        line = "".join(char if char.isprintable() else " " for char in text)
        name = " ".join(line.split())[:MAX_NAME_CHARS].strip()
        if name:
            name_session(self._home, self._session_id, name)
