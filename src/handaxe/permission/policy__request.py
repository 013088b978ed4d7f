"""What is decided about: one call, with its paths after links were followed."""

from typing import Any

import msgspec

from handaxe.contract.decision import ToolDefinition
from handaxe.contract.permission_subjects import Access


class JudgedPath(msgspec.Struct, frozen=True):
    """A path of a call: where it stands and where it leads."""

    path: str
    """Absolute, with `.` and `..` resolved by name."""
    real: str
    """After links; the same as `path` where none was followed."""
    access: Access
    field: str | None = None
    hard_link_outside: bool = False
    """Whether the file has another name outside the working directories."""


class PermissionQuery(msgspec.Struct, frozen=True):
    """One call, as far as permission is concerned."""

    tool: str
    aliases: tuple[str, ...] = ()
    read_only: bool = False
    paths: tuple[JudgedPath, ...] = ()
    texts: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    """Hosts of the network that the call would reach."""
    input: dict[str, Any] = {}
    command: str | None = None
    """The shell command the call would run; read by `commands`."""
    asks_person: bool = False
    """Whether running the call is itself a question to a person."""
    confined: bool = True
    """Whether the call changes nothing but the paths it names; False for unknown effects."""
    definition: ToolDefinition | None = None
    """What a server says about its tool, and how that server is reached."""
