"""How a session begins, as hooks hear it: what prepares it, then its start."""

from typing import Any, Final, Literal

import msgspec

from handaxe.hooks.notify import fire_hooks
from handaxe.pipeline.context import PipelineContext
from handaxe.storage.sessions import SessionTitle

Setup = Literal["init", "maintenance"]
_UNNAMED: Final = frozenset({"clear", "compact"})
"""Starts at which hooks do not choose the name."""


class SessionStart(msgspec.Struct, frozen=True):
    """What a session's beginning is."""

    source: str
    """`startup`, `resume`, `clear` or `fork`."""
    setup: Setup | None = None
    """What is prepared before, if anything."""


async def run_start_hooks(
    context: PipelineContext, start: SessionStart, title: SessionTitle
) -> str | None:
    """Tell hooks; the first message of the session, if one of them has it.

    What they say to the model is kept for its next request.
    """
    if start.setup is not None:
        prepared = await fire_hooks(context, "Setup", trigger=start.setup)
        context.hooks.late += prepared.messages
    if not context.hooks.watches("SessionStart"):
        return None
    about: dict[str, Any] = {"source": start.source}
    if context.hooks.models is not None:
        about["model"] = context.hooks.models.name
    if (name := title.read()) is not None:
        about["session_title"] = name
    outcome = await fire_hooks(context, "SessionStart", **about)
    context.hooks.late += outcome.messages
    wanted = outcome.extra.get("sessionTitle")
    if isinstance(wanted, str) and start.source not in _UNNAMED:
        title.write(wanted)
    said = outcome.extra.get("initialUserMessage")
    return said if isinstance(said, str) and said.strip() else None
