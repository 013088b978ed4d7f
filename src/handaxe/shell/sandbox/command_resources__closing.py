"""What a confined command holds while it runs, and lets go of at its end."""

import os
from collections.abc import Sequence

from handaxe.contract.faults.shell__sandbox_faults import NoSandbox
from handaxe.shell.sandbox import mount_points as placeholders
from handaxe.shell.sandbox.command_resources import PathReplaced, pin
from handaxe.shell.sandbox.protected_files import ProtectedPathGuard
from handaxe.shell.sandbox.proxy import ProxyConnection
from handaxe.text.escape import to_visible_text


class CommandCleanup:
    """What is left to do after a command's end; called, it does that and tells what happened."""

    def __init__(
        self,
        *descriptors: int,
        guard: ProtectedPathGuard | None,
        told: tuple[str, ...] = (),
        door: ProxyConnection | None = None,
        masks: tuple[Sequence[str], str | None] = ((), None),
    ) -> None:
        self.descriptors = descriptors
        self._guard = guard
        self._earlier = told
        self._door = door
        self._masks = masks
        self._told: tuple[str, ...] | None = None

    def pin(self, options: list[str], roots: Sequence[str]) -> list[str]:
        """Hold the sources of mounts open until the end."""
        try:
            options, held = pin(options, roots)
        except PathReplaced as error:
            self()
            raise NoSandbox(str(error)) from None
        self.descriptors += tuple(held)
        return options

    def __call__(self) -> tuple[str, ...]:
        """Let go; a sentence for each thing worth telling, the same ones if asked again."""
        if self._told is None:
            for descriptor in self.descriptors:
                os.close(descriptor)
            placeholders.release_mount_points(*self._masks)
            told = self._earlier
            if self._guard is not None:
                told = (*told, *self._guard.restore())
            if self._door is not None:
                self._door.close()
                told = (*map(to_visible_text, self._door.refusals), *told)
            self._told = told
        return self._told
