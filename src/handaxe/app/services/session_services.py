"""The services of a session in the order they open, and its state objects."""

import asyncio
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

import msgspec

from handaxe.app.services.background import BackgroundWork
from handaxe.app.services.service import ServiceGroup, SessionContext, SessionService
from handaxe.catalog.catalog import Catalog
from handaxe.config.settings_paths import list_server_files
from handaxe.contract.faults import HookBlocked, SetupError
from handaxe.contract.ports.task_list import Task, TaskChange, TaskStore
from handaxe.hooks.notify import HookContext, fire_hooks
from handaxe.session.jobs import Wakeups
from handaxe.session.loaded_tools import LoadedTools
from handaxe.session.port_registry import Offered
from handaxe.session.read_ledger import ReadLedger
from handaxe.storage.home import MANAGED_DIRECTORIES, get_tasks_directory, get_user_directories
from handaxe.storage.sessions import SessionHistory

if TYPE_CHECKING:
    from handaxe.app.services.mcp import McpArguments, McpService
    from handaxe.contract.ports.skills import Skills
    from handaxe.session.invoked_skills import InvokedSkills
    from handaxe.session.todos import Todos
    from handaxe.session.turn_overrides import BriefMode
    from handaxe.session.web_sources import WebSources
    from handaxe.session.workdir import SessionIdentity
    from handaxe.skills.skill_files import SkillVersions


class SessionServices(ServiceGroup):
    """The services of one session."""

    def __init__(
        self,
        session_context: SessionContext,
        history: SessionHistory,
        mcp_servers: "McpArguments",
        *,
        is_strict: bool,
    ) -> None:
        self.memory = SessionState(session_context, history)
        self.background = BackgroundWork(session_context, self.memory.wakeups)
        self.ready_tree = SnapshotPrewarm(session_context, lambda: self.times_used)
        self.mcp = _create_mcp_service(session_context, mcp_servers, is_strict=is_strict)
        mcp = (self.mcp,) if self.mcp else ()
        super().__init__(self.memory, self.background, self.ready_tree, *mcp)


def _create_mcp_service(
    session_context: SessionContext, given: "McpArguments", *, is_strict: bool
) -> "McpService | None":
    """The MCP service; None without configured servers, so that nothing is loaded."""
    configuration = session_context.configuration
    if not isinstance(cast("object", given), str | Mapping | Sequence | None):
        raise SetupError(f"`mcp_servers` takes a table, a file, or several; got {given!r}.")
    is_named = given or isinstance(given, str) or configuration.settings.mcp_servers
    if not is_named and all(_is_absent(path) for path in list_server_files(configuration.root)):
        return None
    from handaxe.app.services.mcp import McpService

    return McpService(session_context, given, is_strict=is_strict)


def _is_absent(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


START_S = 0.5
"""Idle seconds before it starts, so that it slows no calls down."""
_COMMANDS = ("Bash", "Monitor")


class SnapshotPrewarm(SessionService):
    """Prepares the snapshot for the first command of a session."""

    def __init__(self, session_context: SessionContext, times_used: Callable[[], int]) -> None:
        self._session_context = session_context
        self._times_used = times_used
        self._used_before = 0
        self._is_wanted = True
        self._timer: asyncio.TimerHandle | None = None
        self._work: asyncio.Future[None] | None = None

    def open(self, catalog: Catalog) -> None:
        """Start when the session is idle."""
        with suppress(RuntimeError):
            # Without a running loop it cannot wait.
            self._wait(catalog)

    def leave(self) -> None:
        """Cancel the preparation."""
        self._is_wanted = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def close(self) -> None:
        """Stop; a started snapshot is closed with the undo record."""
        self.leave()
        if self._work is not None:
            await asyncio.wait([self._work])

    def begin_if_idle(self, catalog: Catalog) -> None:
        """Start, unless a call runs or came since the last check; then check again later."""
        if self._session_context.is_busy() or self._times_used() != self._used_before:
            self._wait(catalog)
        elif catalog.can_offer(*_COMMANDS):
            self._work = asyncio.ensure_future(self._session_context.checkpoints.prepare())

    def _wait(self, catalog: Catalog) -> None:
        if self._is_wanted:
            self._used_before = self._times_used()
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(START_S, self.begin_if_idle, catalog)


class SessionState(SessionService):
    """State objects of one session for tools."""

    def __init__(self, session_context: SessionContext, history: SessionHistory) -> None:
        self._session_context = session_context
        self._history = history
        self.loaded = LoadedTools(session_context.emit)
        self.loaded.replay(history.loaded_tools)
        self.wakeups = Wakeups()
        self._skill_versions: SkillVersions | None = None
        self._web_sources: WebSources | None = None
        self._parent: SessionState | None = None
        shared = session_context.configuration.settings.task_list
        if shared is not None and not re.fullmatch(r"[A-Za-z0-9._-]{1,80}", shared):
            raise SetupError(
                f"Invalid name of a task list {shared!r}. Use letters, digits, . _ and -."
            )
        self._tasks_directory = get_tasks_directory(
            session_context.data_home, shared or session_context.session_id
        )

    @property
    def ports(self) -> Offered:
        """The state objects by type."""
        return {
            LoadedTools: self.loaded,
            Wakeups: self.wakeups,
            "handaxe.contract.ports.skills.Skills": self._skills,
            "handaxe.contract.ports.task_list.TaskStore": self._tasks,
            "handaxe.session.turn_overrides.BriefMode": self._create_brevity,
            "handaxe.session.workdir.SessionIdentity": self._create_identity,
            "handaxe.session.invoked_skills.InvokedSkills": self._create_invoked_skills,
            "handaxe.session.todos.Todos": self._create_todos,
            "handaxe.session.web_sources.WebSources": self.find_web_sources,
        }

    def create_for_agent(
        self, session_context: SessionContext, history: SessionHistory
    ) -> "SessionState":
        """The state of a subagent; tasks and wakeups are shared."""
        own = SessionState(session_context, history)
        own.wakeups, own._skill_versions = self.wakeups, self._skill_versions
        own._parent = self._parent or self
        return own

    def _skills(self) -> "Skills":
        from handaxe.skills.locations import SkillLocations
        from handaxe.skills.skill_files import DiskSkills, SkillVersions

        workdir, configuration = self._session_context.workdir, self._session_context.configuration
        wanted = configuration.discovery.skills
        if wanted == "none":
            places = SkillLocations()
        elif wanted == "added":
            places = SkillLocations(added=self._added, commands=False)
        else:
            own = (f"{workdir.home}/.claude", f"{workdir.home}/.handaxe")
            users = tuple(dict.fromkeys((*get_user_directories(), *own)))
            places = SkillLocations(
                managed=MANAGED_DIRECTORIES,
                users=users if "user" in configuration.sources else (),
                root=workdir.root,
                trusted_as=configuration.root,
            )
            if "project" in configuration.sources:
                places = msgspec.structs.replace(
                    places,
                    directories=lambda: (workdir.current, workdir.root),
                    added=self._added,
                    touched=self._touched,
                )
        self._skill_versions = self._skill_versions or SkillVersions()
        return DiskSkills(places, self._override_of, self._skill_versions)

    def _override_of(self, name: str) -> str:
        """Who may see a skill."""
        configuration = self._session_context.configuration
        only = configuration.discovery.only_skills
        if only is not None and name not in only:
            return "off"
        return configuration.settings.skill_overrides.get(name, "on")

    def _touched(self) -> tuple[str, ...]:
        ledger: ReadLedger = self._session_context.pipeline_context().ports[ReadLedger]
        return ledger.paths()

    def _added(self) -> list[str]:
        """Working directories added by the user; those of settings are for files only."""
        named = {
            os.path.realpath(path) for path in self._session_context.configuration.directories()[0]
        }
        return [root for root in self._session_context.workdir.roots[1:] if root not in named]

    def _tasks(self) -> "TaskStore":
        from handaxe.storage.task_lists import DiskTaskList

        return HookedTaskList(
            DiskTaskList(self._tasks_directory), self._session_context.pipeline_context
        )

    def _create_brevity(self) -> "BriefMode":
        from handaxe.session.turn_overrides import BriefMode

        brevity = BriefMode(self._session_context.emit)
        if self._history.brief is not None:
            brevity.replay(self._history.brief)
        return brevity

    def _create_identity(self) -> "SessionIdentity":
        from handaxe.session.workdir import SessionIdentity

        return SessionIdentity(self._session_context.session_id, self._session_context.workdir.root)

    def _create_invoked_skills(self) -> "InvokedSkills":
        from handaxe.session.invoked_skills import InvokedSkills

        invoked = InvokedSkills(self._session_context.emit)
        invoked.replay(self._history.skills)
        return invoked

    def find_web_sources(self) -> "WebSources":
        """The pages that the session used; all its agents share them."""
        if self._parent is not None:
            return self._parent.find_web_sources()
        if self._web_sources is None:
            from handaxe.session.web_sources import WebSources

            self._web_sources = WebSources(self._session_context.emit)
            self._web_sources.replay(self._history.sources)
        return self._web_sources

    def _create_todos(self) -> "Todos":
        from handaxe.session.todos import Todos

        todos = Todos(self._session_context.emit)
        if self._history.todos is not None:
            todos.replay(self._history.todos)
        return todos


class HookedTaskList(TaskStore):
    """A task list with hooks for created and completed tasks."""

    def __init__(self, tasks: TaskStore, context: Callable[[], HookContext]) -> None:
        self._tasks = tasks
        self._context = context

    async def create(
        self, subject: str, description: str, active_form: str | None, metadata: dict[str, Any]
    ) -> Task:
        """Add a task; delete it again if a hook refuses it."""
        task = await self._tasks.create(subject, description, active_form, metadata)
        outcome = await fire_hooks(self._context(), "TaskCreated", **_describe_task(task))
        if outcome.blocked is not None:
            await self._tasks.change(task.id, TaskChange(status="deleted"))
            raise HookBlocked(outcome.blocked)
        return task

    async def find(self, task_id: str) -> Task | None:
        """The task of this id, or None."""
        return await self._tasks.find(task_id)

    async def all(self) -> tuple[Task, ...]:
        """Every task, the oldest first."""
        return await self._tasks.all()

    async def change(self, task_id: str, change: TaskChange) -> tuple[Task, Task]:
        """Change a task; a hook may refuse its completion."""
        if change.status == "completed":
            task = await self._tasks.find(task_id)
            if task is not None and task.status != "completed":
                outcome = await fire_hooks(self._context(), "TaskCompleted", **_describe_task(task))
                refusal = outcome.blocked or outcome.stop
                if refusal is not None:
                    raise HookBlocked(refusal)
        return await self._tasks.change(task_id, change)


def _describe_task(task: Task) -> dict[str, Any]:
    told = {"task_id": task.id, "task_subject": task.subject}
    return {**told, "task_description": task.description} if task.description else told
