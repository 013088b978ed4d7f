"""Trying commands where nothing lasts, joined to one session."""

from collections.abc import Mapping
from typing import Any

from handaxe.app.companions import Companion, Surroundings
from handaxe.contract.ports.previews import CommandPreviews, Preview
from handaxe.contract.ports.shell import ShellCommand


class Previewing(Companion, CommandPreviews):
    """Offers previews of commands; what makes them is loaded with the first one."""

    def __init__(self, around: Surroundings) -> None:
        self._workdir = around.workdir

    @property
    def offers(self) -> Mapping[type[Any], Any]:
        """The port."""
        return {CommandPreviews: self}

    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run it there; a `ToolFault` where this machine cannot keep its changes apart."""
        from handaxe.host.overlay.previews import OverlayPreviews

        return await OverlayPreviews(lambda: self._workdir.roots).preview(command, timeout_s)
