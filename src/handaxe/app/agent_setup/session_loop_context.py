"""A session as the agent that works in it sees it."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from handaxe.agent.loop_context import LoopContext
from handaxe.agent.memory.nested_memory import NestedMemory, notify_instructions_loaded
from handaxe.app.agent_setup.session_loop_context__open_tasks import list_open_items
from handaxe.app.agent_setup.session_loop_context__server_words import ServerInstructions
from handaxe.app.agent_setup.session_loop_context__tool_specs import ToolSpecs
from handaxe.app.agent_setup.session_loop_context__undo_reminders import UndoReminders
from handaxe.app.session import Session
from handaxe.catalog.deferred_tools import DeferredToolAnnouncer
from handaxe.contract.faults import UnknownTool
from handaxe.session.invoked_skills import InvokedSkills
from handaxe.session.permission_state import PermissionState
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.turn_overrides__brevity import BriefMode
from handaxe.skills.listing import SkillAnnouncer
from handaxe.storage.sessions__session_title import SessionTitle

MAX_FILES = 50
SKILL_CHARS = 20_000
ALL_SKILLS_CHARS = 100_000


def build_loop_context(session: Session) -> LoopContext:
    """The session itself, for its main agent."""
    among = session.collaborators
    announcer = DeferredToolAnnouncer(session.deferral)
    nearby = NestedMemory(
        among.offers[ReadLedger],
        among.emit,
        session.heard,
        partial(notify_instructions_loaded, among),
    )
    skills = SkillAnnouncer(among.offers, session.settings)
    words = ServerInstructions(among.offers, among.catalog.list_visible_names)
    undos = UndoReminders(session.surroundings.session_directory, session.said)
    title = SessionTitle(session.surroundings.data_home, session.id)
    return LoopContext(
        among=among,
        open_stream=session.stream,
        specs=ToolSpecs(among),
        subscribe=session.subscribe,
        new_call_id=session.new_call_id,
        flush=session.flush,
        reminders=lambda: collect_reminders(among.offers, nearby, skills),
        notes=lambda: collect_notes(announcer, skills, words),
        changes=lambda: collect_changes(announcer, nearby, skills, words, undos),
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


def collect_notes(
    announcer: DeferredToolAnnouncer, skills: SkillAnnouncer, words: ServerInstructions
) -> tuple[str, ...]:
    """Sections of the system prompt: skills that can be run, servers, tools that can be loaded."""
    return tuple(note for note in (skills.first(), words.first(), announcer.first()) if note)


async def collect_changes(
    announcer: DeferredToolAnnouncer,
    nearby: NestedMemory,
    skills: SkillAnnouncer,
    words: ServerInstructions,
    undos: Callable[[], Sequence[str]] = tuple,
) -> Sequence[str]:
    """What the model has to hear now: tools and skills that came, instructions, undos."""
    return (*announcer(), *words(), *await nearby.news(), *skills(), *undos())


async def collect_reminders(
    offers: Mapping[type[Any], Any], nearby: NestedMemory, news: SkillAnnouncer
) -> Sequence[str]:
    """State that must survive a summary, in words for the model."""
    state: PermissionState | None = offers.get(PermissionState)
    brevity: BriefMode | None = offers.get(BriefMode)
    ledger: ReadLedger | None = offers.get(ReadLedger)
    skills: InvokedSkills | None = offers.get(InvokedSkills)
    told: list[str] = []
    if state is not None and state.mode == "plan":
        told.append("Plan mode is on: nothing may be changed before the plan is agreed to.")
    if brevity is not None and brevity.enabled:
        told.append("The user wants short answers.")
    if ledger is not None:
        told.append(_format_read_files(ledger))
    told += await list_open_items(offers)
    if skills is not None:
        told += _format_skills(skills)
    told += nearby.reminders()
    told += news.reminders()
    return [text for text in told if text]


def _format_read_files(ledger: ReadLedger) -> str:
    paths = ledger.paths()
    if not paths:
        return ""
    more = f"\n... and {len(paths) - MAX_FILES} more" if len(paths) > MAX_FILES else ""
    listed = "\n".join(f"- {path}" for path in paths[-MAX_FILES:])
    head = "Files you have read in this session; editing them needs no new read:"
    return f"{head}\n{listed}{more}"


def _format_skills(skills: InvokedSkills) -> list[str]:
    """The newest texts first, as long as there is room."""
    kept: list[str] = []
    left = ALL_SKILLS_CHARS
    for name, text in reversed(skills.texts.items()):
        shown = text[: min(SKILL_CHARS, left)]
        left -= len(shown)
        if shown:
            kept.append(f"The skill {name!r} that you follow:\n{shown}")
    return kept
