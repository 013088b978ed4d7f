"""The start of a session for hooks: Setup, then SessionStart."""

from typing import Any, Final, Literal

import msgspec

from handaxe.hooks.notify import fire_hooks
from handaxe.pipeline.context import PipelineContext
from handaxe.storage.sessions import SessionTitle

Setup = Literal["init", "maintenance"]
_UNNAMED: Final = frozenset({"clear", "compact"})
"""Sources of SessionStart where hooks do not name the session."""


class SessionStart(msgspec.Struct, frozen=True):
    """The source and setup of a session start."""

    source: str
    """`startup`, `resume`, `clear` or `fork`."""
    setup: Setup | None = None
    """The kind of Setup hooks to run before, if any."""


async def run_start_hooks(
    context: PipelineContext, start: SessionStart, title: SessionTitle
) -> str | None:
    """Run the hooks and return the first message of the session, if one of them has it.

    Their output for the model is kept for its next request.
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
