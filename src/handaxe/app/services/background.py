"""The shell and the background work of one session: started with the first command."""

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from handaxe.app.services.service import SessionContext, SessionService
from handaxe.config.settings import Settings
from handaxe.contract.events import JobEnded, JobStarted
from handaxe.contract.faults import Cancelled, SetupError, ToolFault, UnknownTool
from handaxe.contract.job_state import JobState
from handaxe.contract.permission_subjects import CommandSubject
from handaxe.contract.ports.jobs import Job
from handaxe.contract.result import ToolResult
from handaxe.disk import locks
from handaxe.disk.durability import close
from handaxe.disk.errors import DiskFault
from handaxe.pipeline.context import CommandProbes, DiskProbe
from handaxe.session.jobs import Announcement, Jobs, Wakeups
from handaxe.session.port_registry import Offered
from handaxe.session.workdir import Workdir
from handaxe.storage.home import make_private_directory

if TYPE_CHECKING:
    from handaxe.app.services.session_shell import SessionConfiner, SessionShell
    from handaxe.contract.ports.agents import AgentState
    from handaxe.contract.readable_files import ReadableFiles


TASKS = "tasks"
"""The directory of command output in a session's directory."""
AGENTS = "agents"
"""The directory of agents in a session's directory."""


class BackgroundWork(SessionService):
    """Offers the shell and the list of jobs."""

    def __init__(self, session_context: SessionContext, wakeups: Wakeups) -> None:
        self._session_context = session_context
        self._wakeups = wakeups
        settings = session_context.configuration.settings
        options = settings.shell
        self.jobs = Jobs(
            self._announce,
            max_running=options.max_background if settings.background_tasks else 0,
            max_of_user=options.max_background_of_user,
            elsewhere=self._elsewhere,
            at_end=self._record_changes,
            kept_agents=self._kept_agents,
            kept_work=_restore_job,
        )
        session_context.workdir.free_to_read += (str(session_context.session_directory / TASKS),)

    @property
    def ports(self) -> Offered:
        """The shell, started on first use, and the jobs."""
        return {
            Jobs: self.jobs,
            "handaxe.contract.ports.shell.Shell": lambda: self._shell,
            "handaxe.contract.ports.shell.Confiner": lambda: self._confiner,
        }

    def _announce(self, event: Announcement) -> None:
        if isinstance(event, JobStarted | JobEnded):
            self._running.note(len(self.jobs.running()))
        self._session_context.emit(event)

    def _elsewhere(self) -> int:
        return self._running.elsewhere()

    def _kept_agents(self) -> "list[AgentState]":
        from handaxe.storage.agent_files import AgentFiles

        return AgentFiles(self._session_context.session_directory / AGENTS).states()

    async def _record_changes(self, state: JobState) -> None:
        """Record changes of background work as changes of its call."""
        if state.call_id:
            await self._session_context.checkpoints.after(state.call_id)
        self._wakeups.wake(f"{state.job_id} has ended.")

    async def close(self) -> None:
        """End everything that runs."""
        await self.jobs.close()
        if "_running" in self.__dict__:
            self._running.close()
        if "_shell" in self.__dict__:
            await self._shell.close()
        if "_confiner" in self.__dict__:
            self._confiner.close()

    @cached_property
    def _running(self) -> "TaskCounter":

        return TaskCounter(self._session_context.data_home)

    @cached_property
    def _shell(self) -> "SessionShell":
        from handaxe.app.services.session_shell import SessionShell

        return SessionShell(self._session_context, self._confiner)

    @cached_property
    def _confiner(self) -> "SessionConfiner":
        from handaxe.app.services.session_shell import SessionConfiner

        return SessionConfiner(self._session_context)


def _restore_job(state: JobState) -> Job:
    from handaxe.shell.exec.restored_jobs import RestoredJob

    return RestoredJob(state)


def make_command_probes(ports: Mapping[type[Any], Any]) -> CommandProbes:
    """Facts of this machine about commands."""

    def find_cross_check() -> Callable[[str], int | None] | None:
        from handaxe.shell.exec import shfmt

        return shfmt.find_cross_check()

    async def environment(directory: str) -> Mapping[str, str] | None:
        from handaxe.contract.ports.shell import Shell

        shell: Shell | None = ports.get(Shell)
        try:
            return None if shell is None else await shell.get_environment(directory)
        except (SetupError, ToolFault):
            # No command can run here; the command itself reports that.
            return None

    async def git_doubt(directory: str) -> str:
        from handaxe.git.config_safety import explain_git_doubt

        return explain_git_doubt(directory, await environment(directory))

    async def project_programs(directory: str) -> frozenset[str]:
        from handaxe.shell.exec.bash_binary import list_project_programs

        variables = await environment(directory)
        if variables is None:
            return frozenset()
        return list_project_programs(variables.get("PATH", ""), directory, ports[Workdir].roots)

    def sandbox(subject: CommandSubject) -> "ReadableFiles | None":
        settings: Settings = ports[Settings]
        options = settings.sandbox
        if not options.enabled or not options.auto_allow_bash_if_sandboxed:
            return None
        from handaxe.contract.ports.shell import Confiner

        confiner: Confiner | None = ports.get(Confiner)
        if confiner is None:
            return None
        # A scan that skipped files proves nothing.
        is_confined = confiner.is_confining(subject.command, unconfined=subject.unconfined)
        return confiner.get_readable_files() if is_confined else None

    def disk() -> DiskProbe:
        from handaxe.shell.exec import preflight_scan

        return cast("DiskProbe", preflight_scan)

    return CommandProbes(find_cross_check, git_doubt, project_programs, sandbox, disk)


def append_notices(result: ToolResult, jobs: Jobs) -> ToolResult:
    """The result with news of background work, each once.

    For clients that get text only in results.
    """
    if result.code in {Cancelled.code, UnknownTool.code}:
        # Clients may drop the text next to such an error.
        return result
    news = map(str, jobs.take_notices())
    messages = (*result.messages, *news)
    return msgspec.structs.replace(result, messages=messages) if messages else result


_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DIGITS = 8


class TaskCounter:
    """Counts of background work in this and other sessions."""

    def __init__(self, home: Path) -> None:
        self._directory = home / "running"
        self._own = self._directory / os.urandom(8).hex()
        self._fd = -1

    def note(self, count: int) -> None:
        """Publish the number of running jobs; a full disk is ignored."""
        with suppress(OSError, DiskFault):
            if count and self._fd < 0:
                make_private_directory(self._directory)
                self._fd = os.open(self._own, _CREATE, 0o600)
                locks.hold(self._fd, wait_s=0)
            if count:
                os.pwrite(self._fd, b"%*d" % (_MOST_DIGITS, count), 0)
        if not count:
            self.close()

    def elsewhere(self) -> int:
        """The number of running jobs in other sessions."""
        total = 0
        with suppress(OSError):
            for place in self._directory.iterdir():
                if place != self._own:
                    total += _read_count(place)
        return total

    def close(self) -> None:
        """Remove this session's count."""
        if self._fd >= 0:
            self._own.unlink(missing_ok=True)
            close(self._fd)
            self._fd = -1


def _read_count(place: Path) -> int:
    try:
        fd = os.open(place, _OPEN)
    except OSError:
        return 0
    try:
        locks.hold(fd, wait_s=0)
        # Its process ended.
        place.unlink(missing_ok=True)
    except DiskFault:
        with suppress(OSError, ValueError):
            return int(os.pread(fd, _MOST_DIGITS, 0))
    finally:
        close(fd)
    return 0
