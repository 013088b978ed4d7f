"""Trying commands where nothing lasts, joined to one session."""

from handaxe.app.companions import Surroundings
from handaxe.contract.ports.previews import CommandPreviews, Preview
from handaxe.contract.ports.shell import ShellCommand


class Previewing(CommandPreviews):
    """Previews of commands; what makes them is loaded with the first one."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run it there; a `ToolFault` where this machine cannot keep its changes apart."""
        from handaxe.host.overlay.previews import OverlayPreviews

        roots = self._around.workdir.roots
        previews = OverlayPreviews(lambda: roots, hidden=self._hidden)
        return await previews.preview(command, timeout_s)

    def _hidden(self) -> tuple[str, ...]:
        """What the sandbox hides is hidden from a trial too."""
        if not self._around.configuration.settings.sandbox.enabled:
            return ()
        from handaxe.app.sandboxing import confiner_for

        return confiner_for(self._around).hidden()
