"""Settings that change while a session runs, carried into the parts that hold them."""

import asyncio
import os
from collections.abc import Callable, MutableMapping, Sequence
from contextlib import suppress
from typing import Any

from handaxe.config.project import FILE_SOURCES, Configuration
from handaxe.config.settings import Settings
from handaxe.config.working_directories import (
    list_directories,
    make_absolute,
    resolve_working_directories,
)
from handaxe.contract.events import Event, SettingsChanged
from handaxe.contract.faults import SetupError
from handaxe.rules.modes import choose_strictest_mode, parse_mode
from handaxe.session.permission_state import Mode, PermissionState
from handaxe.session.workdir import Workdir

PathLike = str | os.PathLike[str]


class SettingsReloader:
    """Keeps a session's rules, directories and options as the settings say."""

    def __init__(
        self,
        configuration: Configuration,
        permissions: PermissionState,
        workdir: Workdir,
        *,
        root: PathLike,
        added: Sequence[PathLike],
        ports: MutableMapping[type[Any], Any],
        emit: Callable[[Event], object],
    ) -> None:
        self._configuration = configuration
        self._permissions = permissions
        self._workdir = workdir
        self._root = root
        self._added = _make_all_absolute(added)
        self._ports = ports
        self._emit = emit
        self._joined = configuration.merged
        self._told = configuration.warnings
        self._looked_for: asyncio.Task[Any] | None = None
        """Whose call looked at the files in this turn of the event loop."""

    def follow(self) -> bool:
        """Read the settings that changed on disk and return whether any did."""
        configuration = self._configuration
        if not self._is_already_read():
            configuration.refresh()
        # A change made by a call of this session has been read already, but not carried on.
        if configuration.merged is self._joined:
            return False
        self._joined = configuration.merged
        for source in FILE_SOURCES:
            rules = configuration.rules(source)
            if rules != list(self._permissions.list_rules(source)):
                self._permissions.replace_rules(source, rules)
        with suppress(SetupError):
            # A directory that has just gone is no reason to stop: the others stay as they were.
            self.place()
        self._ports[Settings] = configuration.settings
        if find_mode_problem(configuration, self._permissions.mode):
            self._permissions.set_mode("default")
        new = tuple(told for told in configuration.warnings if told not in self._told)
        self._told = configuration.warnings
        self._emit(SettingsChanged(files=configuration.changed_files, warnings=new))
        return True

    def _is_already_read(self) -> bool:
        """Whether a call that began together with this one has looked at the files.

        Other tasks in the same turn of the event loop were due before that look, so nothing they
        follow from can have changed a file since; the same task may well have.
        """
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return False
        if loop.get_task_factory() is not None:
            # A factory of the host's may start tasks at once, before their turn.
            return False
        task = asyncio.current_task(loop)
        if self._looked_for is None:
            loop.call_soon(self._end_turn)
        elif self._looked_for is not task:
            return True
        self._looked_for = task
        return False

    def _end_turn(self) -> None:
        self._looked_for = None

    def place(self) -> list[str]:
        """Use the directories that arguments and settings name now, and return the new ones."""
        known = self._workdir.roots
        more = self._configuration.directories()[0]
        data = self._configuration.data_directory
        self._workdir.place(*resolve_working_directories(self._root, (*self._added, *more), data))
        return [root for root in self._workdir.roots if root not in known]

    @property
    def added(self) -> tuple[str, ...]:
        """The working directories that are not named in settings."""
        return self._added

    def set_added(self, directories: Sequence[PathLike]) -> list[str]:
        """Replace these directories for the rest of the session, and return the new ones.

        Raises:
            SetupError: one of them is not a directory, and nothing was changed.
        """
        earlier, self._added = self._added, _make_all_absolute(directories)
        try:
            return self.place()
        except SetupError:
            self._added = earlier
            raise


def _make_all_absolute(directories: Sequence[PathLike]) -> tuple[str, ...]:
    """Relative paths start at the current directory of the program, even if that changes later."""
    return tuple(make_absolute(one) for one in list_directories(directories))


def find_mode_problem(configuration: Configuration, mode: Mode) -> str | None:
    """Why settings forbid a mode, if they do."""
    if configuration.unknown_files and choose_strictest_mode(mode, "default") != mode:
        return (
            f"{configuration.unknown_files[0]} cannot be read, and its earlier deny rules are "
            f"unknown. So {mode} mode is refused. Fix the file, or use default mode."
        )
    options = configuration.settings.permissions
    forbidden = {
        "bypassPermissions": options.disable_bypass_permissions_mode,
        "auto": options.disable_auto_mode,
    }
    if forbidden.get(mode) is None:
        return None
    name = "disableBypassPermissionsMode" if mode == "bypassPermissions" else "disableAutoMode"
    return f"The settings forbid {mode} mode (`permissions.{name}`)."


def validate_mode(configuration: Configuration, name: str) -> Mode:
    """The mode of that name, if there is one and the settings allow it."""
    mode = parse_mode(name)
    if mode is None:
        raise SetupError(f"{name!r} is not a permission mode.")
    refuse_mode(configuration, mode)
    return mode


def refuse_mode(configuration: Configuration, mode: Mode) -> None:
    """Raise if settings forbid a mode."""
    problem = find_mode_problem(configuration, mode)
    if problem is not None:
        raise SetupError(problem)
