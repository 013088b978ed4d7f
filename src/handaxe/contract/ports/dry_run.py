"""Show what a command would change, without changing it."""

from abc import ABC, abstractmethod

import msgspec

from handaxe.contract.display import Diff
from handaxe.contract.ports.shell import CommandEnd, CommandOutput, ShellCommand


class Preview(msgspec.Struct, frozen=True, kw_only=True):
    """The output and the changes of a command that ran without lasting effect."""

    output: CommandOutput
    end: CommandEnd
    diffs: tuple[Diff, ...] = ()
    """Text files that would be created, changed or deleted."""
    others: tuple[str, ...] = ()
    """Sentences on changes that have no diff: binary files, modes, links, directories."""
    left_out: tuple[str, ...] = ()
    """Directories whose changes were not looked at."""


class CommandPreviews(ABC):
    """Runs a command against a temporary copy of the roots."""

    @abstractmethod
    async def preview(self, command: ShellCommand, timeout_s: float) -> Preview:
        """Run it there; a `ToolFault` where this machine cannot keep its changes apart."""
