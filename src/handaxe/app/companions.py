"""What lives as long as a session beside its tools: the shell, servers, agents.

Each companion is a module of its own; here is only what they have in common.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from handaxe.app.configuration import Configuration
from handaxe.contract.events import Event
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.result_store import ResultStore
from handaxe.runtime.permission.policy import CurrentPolicy
from handaxe.session.permission_state import PermissionState
from handaxe.session.workdir import Workdir


class Surroundings(msgspec.Struct, frozen=True, kw_only=True):
    """What a companion can build on."""

    session_id: str
    data_home: Path
    session_directory: Path
    configuration: Configuration
    workdir: Workdir
    permissions: PermissionState
    policy: CurrentPolicy
    files: Files
    results: ResultStore
    emit: Callable[[Event], None]


class Companion:
    """Something a session opens with and closes at its end."""

    @property
    def offers(self) -> Mapping[type[Any], Any]:
        """Ports and state objects for tools, by type; cheap, before anything is started."""
        return {}

    def for_agent(self, around: Surroundings) -> "Companion | None":  # noqa: ARG002
        """The same for a sub-agent in surroundings of its own; None: it shares this one."""
        return None

    async def close(self) -> None:
        """End whatever it started."""
        return
