"""A session as the agent that works in it sees it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from handaxe.agent.nearby_memory import NearbyMemory, tell_loaded
from handaxe.agent.workplace import Workplace
from handaxe.app.loading import Announcer
from handaxe.app.open_tasks import open_items
from handaxe.app.server_words import ServerWords
from handaxe.app.session import Session
from handaxe.app.session_title import SessionTitle
from handaxe.app.skill_listing import SkillNews
from handaxe.app.tool_specs import ToolSpecs
from handaxe.app.undo_reminders import UndoReminders
from handaxe.contract.faults import UnknownTool
from handaxe.session.brevity import Brevity
from handaxe.session.invoked_skills import InvokedSkills
from handaxe.session.permission_state import PermissionState
from handaxe.session.read_ledger import ReadLedger

MAX_FILES = 50
SKILL_CHARS = 20_000
ALL_SKILLS_CHARS = 100_000


def workplace_of(session: Session) -> Workplace:
    """The session itself, for its main agent."""
    among = session.collaborators
    announcer = Announcer(session.deferral)
    nearby = NearbyMemory(
        among.offers[ReadLedger], among.emit, session.heard, partial(tell_loaded, among)
    )
    skills = SkillNews(among.offers, session.settings)
    words = ServerWords(among.offers, among.catalog.list_visible_names)
    undos = UndoReminders(session.surroundings.session_directory, session.said)
    title = SessionTitle(session.surroundings.data_home, session.id)
    return Workplace(
        among=among,
        open_stream=session.stream,
        specs=ToolSpecs(among),
        subscribe=session.subscribe,
        new_call_id=session.new_call_id,
        flush=session.flush,
        reminders=lambda: reminders(among.offers, nearby, skills),
        notes=lambda: notes(announcer, skills, words),
        changes=lambda: changes(announcer, nearby, skills, words, undos),
        nearby=nearby,
        title=title.read,
        rename=title.write,
        has_tool=lambda tool: has_tool(session, tool),
    )


async def has_tool(session: Session, tool: str) -> bool:
    """Whether a tool is on offer; a server that could bring it is waited for."""
    session.follow()
    if tool.startswith("mcp__") and not session.catalog.has(tool):
        for companion in session.companions:
            await companion.expect(tool)
    try:
        session.catalog.find(tool)
    except UnknownTool:
        return False
    return True


def notes(announcer: Announcer, skills: SkillNews, words: ServerWords) -> tuple[str, ...]:
    """Sections of the system prompt: skills that can be run, servers, tools that can be loaded."""
    return tuple(note for note in (skills.first(), words.first(), announcer.first()) if note)


async def changes(
    announcer: Announcer,
    nearby: NearbyMemory,
    skills: SkillNews,
    words: ServerWords,
    undos: Callable[[], Sequence[str]] = tuple,
) -> Sequence[str]:
    """What the model has to hear now: tools and skills that came, instructions, undos."""
    return (*announcer(), *words(), *await nearby.news(), *skills(), *undos())


async def reminders(
    offers: Mapping[type[Any], Any], nearby: NearbyMemory, news: SkillNews
) -> Sequence[str]:
    """State that must survive a summary, in words for the model."""
    state: PermissionState | None = offers.get(PermissionState)
    brevity: Brevity | None = offers.get(Brevity)
    ledger: ReadLedger | None = offers.get(ReadLedger)
    skills: InvokedSkills | None = offers.get(InvokedSkills)
    told: list[str] = []
    if state is not None and state.mode == "plan":
        told.append("Plan mode is on: nothing may be changed before the plan is agreed to.")
    if brevity is not None and brevity.enabled:
        told.append("The user wants short answers.")
    if ledger is not None:
        told.append(_files(ledger))
    told += await open_items(offers)
    if skills is not None:
        told += _skills(skills)
    told += nearby.reminders()
    told += news.reminders()
    return [text for text in told if text]


def _files(ledger: ReadLedger) -> str:
    paths = ledger.paths()
    if not paths:
        return ""
    more = f"\n... and {len(paths) - MAX_FILES} more" if len(paths) > MAX_FILES else ""
    listed = "\n".join(f"- {path}" for path in paths[-MAX_FILES:])
    head = "Files you have read in this session; editing them needs no new read:"
    return f"{head}\n{listed}{more}"


def _skills(skills: InvokedSkills) -> list[str]:
    """The newest texts first, as long as there is room."""
    kept: list[str] = []
    left = ALL_SKILLS_CHARS
    for name, text in reversed(skills.texts.items()):
        shown = text[: min(SKILL_CHARS, left)]
        left -= len(shown)
        if shown:
            kept.append(f"The skill {name!r} that you follow:\n{shown}")
    return kept
