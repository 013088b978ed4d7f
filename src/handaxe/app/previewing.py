"""Trying commands where nothing lasts, joined to one session."""

from handaxe.contract.ports.previews import CommandPreviews, Preview
from handaxe.contract.ports.shell import ShellCommand
from handaxe.session.workdir import Workdir


class Previewing(CommandPreviews):
    """Previews of commands; what makes them is loaded with the first one."""

    def __init__(self, workdir: Workdir) -> None:
        self._workdir = workdir

    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run it there; a `ToolFault` where this machine cannot keep its changes apart."""
        from handaxe.host.overlay.previews import OverlayPreviews

        return await OverlayPreviews(lambda: self._workdir.roots).preview(command, timeout_s)
