"""Trying commands where nothing lasts, joined to one session."""

import os
from typing import TYPE_CHECKING

from handaxe.app.services.service import SessionContext
from handaxe.contract.ports.dry_run import CommandPreviews, Preview
from handaxe.contract.ports.shell import ShellCommand

if TYPE_CHECKING:
    from handaxe.shell.sandbox.confiner import LocalConfiner


class SessionPreviews(CommandPreviews):
    """Previews of commands; what makes them is loaded with the first one."""

    def __init__(self, around: SessionContext) -> None:
        self._around = around

    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run it there; a `ToolFault` where this machine cannot keep its changes apart."""
        from handaxe.shell.exec.dry_run import OverlayPreviews

        roots = self._around.workdir.roots
        previews = OverlayPreviews(
            lambda: roots, hidden=self._hidden, view=self._view, environment=self._environment
        )
        return await previews.preview(command, timeout_s)

    def _environment(self) -> dict[str, str]:
        """What commands find, except what a directory's own tools would add."""
        from handaxe.app.services.session_shell import SESSION_VARIABLES
        from handaxe.shell.exec.environment.command_environment import build_environment_filter

        session_id = self._around.session_id
        more: dict[str, str] = dict.fromkeys(SESSION_VARIABLES, session_id)
        sieve = build_environment_filter(self._around.configuration.settings, more)
        return {**sieve.environment(os.environ), **self._around.among().hooks.variables}

    def _hidden(self) -> tuple[str, ...]:
        """What the sandbox hides is hidden from a trial too."""
        confiner = self._confiner()
        return () if confiner is None else confiner.hidden()

    def _view(self) -> list[str] | None:
        """What the sandbox does not show a trial does not see either."""
        confiner = self._confiner()
        return None if confiner is None else confiner.build_closed_view()

    def _confiner(self) -> "LocalConfiner | None":
        if not self._around.configuration.settings.sandbox.enabled:
            return None
        from handaxe.app.services.sandbox import build_confiner

        return build_confiner(self._around)
