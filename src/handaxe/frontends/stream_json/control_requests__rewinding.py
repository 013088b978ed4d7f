"""Put files back to how they were when a message was said."""

import asyncio

from handaxe.app.session import Session
from handaxe.contract.events import UserSaid
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.undo import ChangedCall
from handaxe.frontends.stream_json.wire_types import Json
from handaxe.storage.sessions import read_events


async def rewind_files(session: Session, message_id: str, *, dry_run: bool = False) -> Json:
    """Undo every change since the message; what that touched."""
    session.flush()
    said_at = await asyncio.to_thread(_find_message_time, session, message_id)
    later = [
        call for call in session.history(diffs=True) if call.at >= said_at and _is_in_effect(call)
    ]
    told = _summarize_changes(later)
    if not later or dry_run:
        return told
    result = await session.undo(later[0].call_id)
    if not result.ok:
        raise SetupError(result.text)
    return told


def _find_message_time(session: Session, message_id: str) -> float:
    around = session.surroundings
    for event in read_events(around.data_home, session.id):
        if isinstance(event, UserSaid) and event.message_id == message_id:
            return event.at
    raise SetupError(f"No message {message_id!r} was said in this session.")


def _is_in_effect(call: ChangedCall) -> bool:
    return not call.undone and not call.undoes


def _summarize_changes(calls: list[ChangedCall]) -> Json:
    changes = [change for call in calls for change in call.changes]
    lines = [line for change in changes for line in change.diff.splitlines()]
    return {
        "canRewind": True,
        "filesChanged": sorted({change.file_path for change in changes}),
        "insertions": sum(line.startswith("+") and not line.startswith("+++") for line in lines),
        "deletions": sum(line.startswith("-") and not line.startswith("---") for line in lines),
    }
