"""The subjects of permission rules: the paths and texts of one call.

A tool names its subjects; the rule engine matches them and knows nothing of tools.
"""

from typing import Literal

import msgspec

Access = Literal["read", "write"]


class PathSubject(msgspec.Struct, frozen=True):
    """A path a call wants to read or change, as the model spelled it."""

    path: str
    access: Access
    field: str | None = None
    """The input field it came from, so that observers can be shown the resolved path."""


class TextSubject(msgspec.Struct, frozen=True):
    """Any other text a rule's specifier is compared with: an agent name, a server's resource."""

    text: str


class CommandSubject(msgspec.Struct, frozen=True):
    """A shell command: read part by part, judged by Bash rules and by the paths it names."""

    command: str
    shell: Literal["bash"] = "bash"
    unconfined: bool = False
    """Asked to run outside the sandbox."""


class HostSubject(msgspec.Struct, frozen=True):
    """A host of the network that a call wants to reach: judged by rules for domains."""

    host: str
    """As rules for domains spell it; empty if the call names none that can be read."""
    name: str = ""
    """The name that leads to it, where the host is an address: rules that forbid it count too."""


Subject = PathSubject | TextSubject | CommandSubject | HostSubject
