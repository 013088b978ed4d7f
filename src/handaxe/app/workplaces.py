"""A session as the agent that works in it sees it."""

from collections.abc import Mapping, Sequence
from typing import Any

from handaxe.agent.workplace import Workplace
from handaxe.app.session import Session
from handaxe.app.tool_specs import ToolSpecs
from handaxe.contract.remembered import Remembered
from handaxe.session.read_ledger import ReadLedger

MAX_FILES = 50


def workplace_of(session: Session) -> Workplace:
    """The session itself, for its main agent."""
    among = session.collaborators
    return Workplace(
        among=among,
        open_stream=session.stream,
        specs=ToolSpecs(session.deferral.sent),
        subscribe=session.subscribe,
        new_call_id=session.new_call_id,
        flush=session.flush,
        reminders=lambda: reminders(among.offers),
    )


def reminders(offers: Mapping[type[Any], Any]) -> Sequence[str]:
    """State that must survive a summary: files seen, and whatever else wants to be told again."""
    values: list[object] = list(offers.values())
    told = [value.reminder() for value in values if isinstance(value, Remembered)]
    seen = [value for value in values if isinstance(value, ReadLedger)]
    for ledger in seen:
        paths = ledger.paths()
        if paths:
            more = f"\n... and {len(paths) - MAX_FILES} more" if len(paths) > MAX_FILES else ""
            listed = "\n".join(f"- {path}" for path in paths[-MAX_FILES:])
            told.append(
                "Files you have read in this session; editing them needs no new read unless they "
                f"changed:\n{listed}{more}"
            )
    return [text for text in told if text]
