"""Everybody the pipeline works with, joined by `handaxe.app`."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from handaxe.contract.events import Event
from handaxe.contract.ports.asker import Asker, Classifier
from handaxe.contract.ports.checkpoints import Checkpoints
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.result_store import ResultStore
from handaxe.runtime.catalog.catalog import Catalog
from handaxe.runtime.catalog.deferral import Deferral
from handaxe.runtime.hooks.run import Hooks
from handaxe.runtime.permission.decide import Policy
from handaxe.session.workdir import Workdir


class Collaborators(msgspec.Struct):
    """What the stages reach; the tools themselves reach only `offers`."""

    session_id: str
    catalog: Catalog
    offers: Mapping[type[Any], Any]
    """Ports and state objects by type, as tools ask for them."""
    workdir: Workdir
    files: Files
    policy: Callable[[], Policy]
    """The rules in force now."""
    hooks: Hooks
    emit: Callable[[Event], None]
    results: ResultStore
    deferral: Deferral | None = None
    """Which tools wait to be loaded."""
    asker: Asker | None = None
    classifier: Classifier | None = None
    checkpoints: Checkpoints | None = None
    opening: Callable[[], Awaitable[None]] | None = None
    """What every call waits for before it goes on: hooks that are told of the session's start."""
    transcript_path: str = ""
    """Where the session's log is, for hooks."""
    agent_id: str | None = None
    """Which sub-agent makes the calls; None for the main one."""
    agent_type: str | None = None
