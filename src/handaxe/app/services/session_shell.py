"""The shell of one session and its sandbox, built with the first command."""

import os
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

import msgspec

from handaxe.app.services.service import SessionContext
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.dry_run import CommandPreviews, Preview
from handaxe.contract.ports.shell import (
    ConfinedCommand,
    ConfinementLevel,
    Confiner,
    RunningCommand,
    Shell,
    ShellCommand,
)
from handaxe.contract.readable_files import ReadableFiles

if TYPE_CHECKING:
    from handaxe.shell.sandbox.confiner import LocalConfiner

SESSION_VARIABLES = ("HANDAXE_SESSION_ID", "CLAUDE_CODE_SESSION_ID")
"""Variables with the session id for commands."""


class SessionConfiner(Confiner):
    """The session's sandbox, built on first use."""

    def __init__(self, session_context: SessionContext) -> None:
        self._session_context = session_context
        self._made: LocalConfiner | None = None

    @property
    def level(self) -> ConfinementLevel:
        """The policy for confined programs."""
        return self._confiner().level

    def is_confining(self, command: str, *, unconfined: bool = False) -> bool:
        """Whether this command would run in the sandbox."""
        if not self._session_context.configuration.settings.sandbox.enabled:
            return False
        return self._confiner().is_confining(command, unconfined=unconfined)

    def get_readable_files(self) -> ReadableFiles | None:
        """The paths that confined programs can read."""
        if not self._session_context.configuration.settings.sandbox.enabled:
            return None
        return self._confiner().get_readable_files()

    def explain_closed_host(self, host: str) -> str | None:
        """Why no program may connect to a host, or None."""
        if not self._session_context.configuration.settings.sandbox.enabled:
            return None
        return self._confiner().explain_closed_host(host)

    def confine(
        self,
        argv: list[str],
        *,
        cwd: str,
        env: dict[str, str],
        unconfined: bool = False,
        command: str | None = None,
    ) -> ConfinedCommand:
        """The command line for `argv`; unchanged without a sandbox."""
        if not self._session_context.configuration.settings.sandbox.enabled:
            plain = ConfinedCommand(argv=argv, env=env, is_confined=False)
            if self._session_context.recovered:
                plain.close = self._confiner().take_recovered
            return plain
        return self._confiner().confine(
            argv, cwd=cwd, env=env, unconfined=unconfined, command=command
        )

    def close(self) -> None:
        """Remove files that the sandbox left on disk."""
        if self._made is not None:
            self._made.close()

    def _confiner(self) -> "LocalConfiner":
        if self._made is None:
            from handaxe.app.services.sandbox import build_confiner

            self._made = build_confiner(self._session_context)
        return self._made


class SessionShell(Shell):
    """A shell that is built with the first command."""

    def __init__(self, session_context: SessionContext, confiner: Confiner | None) -> None:
        self._session_context = session_context
        self._confiner = confiner
        self._shell: Shell | None = None

    def get_ready(self) -> None:
        """Prepare for a command; errors are left to the command itself."""
        with suppress(SetupError):
            self._get_shell().get_ready()
        # Load the large command analysis while another process starts.
        import_module("handaxe.shell.analysis")

    async def start(self, command: ShellCommand) -> RunningCommand:
        """Start it."""
        left = await self._session_context.pipeline_context().hooks.get_command_variables()
        if left:
            self._session_context.configuration.redactor.learn(left)
            command = msgspec.structs.replace(command, env={**left, **command.env})
        return await self._get_shell().start(command)

    async def get_environment(self, cwd: str) -> Mapping[str, str]:
        """The environment of commands in a directory."""
        left = await self._session_context.pipeline_context().hooks.get_command_variables()
        return {**await self._get_shell().get_environment(cwd), **left}

    async def seek(self, program: str, cwd: str) -> str:
        """Search again for a program that a command did not find."""
        return await self._get_shell().seek(program, cwd)

    @property
    def removed_variables(self) -> tuple[str, ...]:
        """Variables of the user that commands do not get because they look like secrets."""
        return self._get_shell().removed_variables

    async def close(self) -> None:
        """Stop the shell, if it started."""
        closing = getattr(self._shell, "close", None)
        if closing is not None:
            await closing()

    def _get_shell(self) -> Shell:
        if self._shell is None:
            self._shell = open_local_shell(self._session_context, self._confiner)
        return self._shell


def open_local_shell(session_context: SessionContext, confiner: Confiner | None) -> Shell:
    """The shell of this machine."""
    from handaxe.shell.exec.factory import create_shell

    session_context.configuration.redactor.learn(os.environ)
    shell = create_shell(
        session_context.session_directory,
        session_context.configuration.settings,
        os.environ,
        more=dict.fromkeys(SESSION_VARIABLES, session_context.session_id),
        confiner=confiner,
        redactor=session_context.configuration.redactor,
    )
    shell.open_trace = session_context.checkpoints.open_trace
    return shell


class SessionPreviews(CommandPreviews):
    """Previews of commands, loaded on first use."""

    def __init__(self, session_context: SessionContext) -> None:
        self._session_context = session_context

    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run the preview; a `ToolFault` if this machine cannot isolate its changes."""
        from handaxe.shell.exec.dry_run import OverlayPreviews

        roots = self._session_context.workdir.roots
        left = await self._session_context.pipeline_context().hooks.get_command_variables()
        env = {**self._environment(), **left}
        previews = OverlayPreviews(
            lambda: roots, hidden=self._hidden, view=self._view, environment=lambda: env
        )
        return await previews.preview(command, timeout_s)

    def _environment(self) -> dict[str, str]:
        """The environment of commands, without variables from hooks."""
        from handaxe.shell.exec.environment.command_environment import build_environment_filter

        session_id = self._session_context.session_id
        more: dict[str, str] = dict.fromkeys(SESSION_VARIABLES, session_id)
        env_filter = build_environment_filter(self._session_context.configuration.settings, more)
        return env_filter.environment(os.environ)

    def _hidden(self) -> tuple[str, ...]:
        """The paths that the sandbox hides."""
        confiner = self._confiner()
        return () if confiner is None else confiner.hidden()

    def _view(self) -> list[str] | None:
        """The paths that the sandbox shows, if it shows only some."""
        confiner = self._confiner()
        return None if confiner is None else confiner.build_closed_view()

    def _confiner(self) -> "LocalConfiner | None":
        if not self._session_context.configuration.settings.sandbox.enabled:
            return None
        from handaxe.app.services.sandbox import build_confiner

        return build_confiner(self._session_context)
