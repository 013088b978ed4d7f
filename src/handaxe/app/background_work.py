"""The shell and the background work of one session: started with the first command."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from handaxe.app.companions import Companion, Surroundings
from handaxe.contract.ports.jobs import JobState
from handaxe.contract.ports.shell import (
    Confined,
    ConfinementLevel,
    Confiner,
    RunningCommand,
    Shell,
    ShellCommand,
)
from handaxe.contract.subjects import CommandSubject
from handaxe.runtime.pipeline.collaborators import CommandFacts
from handaxe.session.jobs import Jobs
from handaxe.session.wakeups import Wakeups
from handaxe.settings.model import Settings

if TYPE_CHECKING:
    from handaxe.host.sandbox.confiner import LocalConfiner

TASKS = "tasks"
"""Where the output of commands is, below a session's directory."""
SESSION_VARIABLES = ("HANDAXE_SESSION_ID", "CLAUDE_CODE_SESSION_ID")
"""By these a command knows which session it runs for."""


class BackgroundWork(Companion):
    """Offers the shell and the list of what runs."""

    def __init__(self, around: Surroundings, wakeups: Wakeups) -> None:
        confiner = self._confiner = SessionConfiner(around)
        options = around.configuration.settings.shell
        self._around = around
        self._wakeups = wakeups
        self.jobs = Jobs(
            around.emit, max_running=options.max_background, at_end=self._see_to_changes
        )
        self._shell = _FirstUse(around, confiner)
        around.workdir.free_to_read += (str(around.session_directory / TASKS),)

    @property
    def offers(self) -> Mapping[type[Any], Any]:
        """The shell, started by nobody yet, and the jobs."""
        return {Shell: self._shell, Jobs: self.jobs, Confiner: self._confiner}

    async def _see_to_changes(self, state: JobState) -> None:
        """What work changed after its call had ended belongs to that call as well."""
        if state.call_id:
            await self._around.checkpoints.after(state.call_id)
        self._wakeups.wake(f"{state.job_id} has ended.")

    async def close(self) -> None:
        """End everything that runs."""
        await self.jobs.close()
        await self._shell.close()
        self._confiner.close()


class SessionConfiner(Confiner):
    """The session's sandbox, built when somebody asks for it."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self._made: LocalConfiner | None = None

    @property
    def level(self) -> ConfinementLevel:
        """What holds for programs that are confined."""
        return self._confiner().level

    def will_confine(self, command: str, *, unconfined: bool = False) -> bool:
        """Whether this command would run inside."""
        if not self._around.configuration.settings.sandbox.enabled:
            return False
        return self._confiner().will_confine(command, unconfined=unconfined)

    def confine(
        self,
        argv: list[str],
        *,
        cwd: str,
        env: dict[str, str],
        unconfined: bool = False,
        command: str | None = None,
    ) -> Confined:
        """How to start `argv`; without a sandbox just so."""
        if not self._around.configuration.settings.sandbox.enabled:
            return Confined(argv=argv, env=env, is_confined=False)
        return self._confiner().confine(
            argv, cwd=cwd, env=env, unconfined=unconfined, command=command
        )

    def close(self) -> None:
        """Take away what the sandbox left on disk."""
        if self._made is not None:
            self._made.close()

    def _confiner(self) -> "LocalConfiner":
        if self._made is None:
            from handaxe.app.sandboxing import confiner_for

            self._made = confiner_for(self._around)
        return self._made


class _FirstUse(Shell):
    """A shell that is built when the first command comes."""

    def __init__(self, around: Surroundings, confiner: Confiner | None) -> None:
        self._around = around
        self._confiner = confiner
        self._shell: Shell | None = None

    async def start(self, command: ShellCommand) -> RunningCommand:
        """Start it."""
        if self._shell is None:
            self._shell = local_shell(self._around, self._confiner)
        return await self._shell.start(command)

    async def close(self) -> None:
        """End what was started, if anything was."""
        closing = getattr(self._shell, "close", None)
        if closing is not None:
            await closing()


def local_shell(around: Surroundings, confiner: Confiner | None) -> Shell:
    """The shell of this machine."""
    from handaxe.host.shell.opening import shell_of

    return shell_of(
        around.session_directory,
        around.configuration.settings,
        os.environ,
        more=dict.fromkeys(SESSION_VARIABLES, around.session_id),
        confiner=confiner,
    )


def command_facts(offers: Mapping[type[Any], Any]) -> CommandFacts:
    """What the machine knows of commands beside their text."""

    def count_commands(text: str) -> int | None:
        from handaxe.host.shfmt import count_commands

        return count_commands(text)

    def is_git_clean(directory: str) -> bool:
        from handaxe.host.git_configuration import is_git_clean

        return is_git_clean(directory)

    def is_confined(subject: CommandSubject) -> bool:
        confiner: Confiner | None = offers.get(Confiner)
        settings: Settings = offers[Settings]
        sandbox = settings.sandbox
        if confiner is None or not sandbox.enabled or not sandbox.auto_allow_bash_if_sandboxed:
            return False
        return confiner.will_confine(subject.command, unconfined=subject.unconfined)

    return CommandFacts(count_commands, is_git_clean, is_confined)
