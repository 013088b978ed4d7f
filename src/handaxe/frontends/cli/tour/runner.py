"""Runs the story: one session, one agent, a prompt per chapter."""

import asyncio
import os
import sys
import time
from collections import defaultdict
from pathlib import Path

from handaxe.agent.events import (
    AgentEvent,
    FromAgent,
    RunFinished,
    ToolAnswered,
    ToolCalled,
    TurnEnded,
)
from handaxe.agent.subagents.definitions import list_builtin_definitions
from handaxe.app.agent import Agent
from handaxe.app.session import Session
from handaxe.contract.call import ToolCall
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.contract.ports.model import TextDelta
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.terminal_prompts import read_answer
from handaxe.frontends.cli.tour.page import TourChapter, TourPage, TourStory


class TourRunner:
    """Runs one story in one project."""

    def __init__(self, story: TourStory, project: Path, page: TourPage) -> None:
        self._story = story
        self._project = project
        self._page = page
        self._telling: ChapterRenderer | None = None
        self.calls = 0
        """The number of calls."""

    async def go(self, home: Path) -> bool:
        """Run every chapter and return whether all ended as expected."""
        self._write_files()
        session = Session(
            self._project,
            permission_mode=self._story.mode,
            allow=self._story.allow,
            deny=self._story.deny,
            settings={"env": {"PATH": _build_path(), "PYTHONDONTWRITEBYTECODE": "1"}},
            setting_sources=(),
            on_ask=self._answer,
            home=home,
        )
        went_well = True
        model = self._story.model()
        # Definitions given here come before files of the user with the same name.
        kinds = {kind.name: kind for kind in list_builtin_definitions()}
        async with session, Agent(model, session, memory=False, agents=kinds) as agent:
            for number, chapter in enumerate(self._story.chapter, 1):
                self._page.chapter(number, chapter.title, chapter.says)
                went_well = await self._tell(agent, chapter) and went_well
        return went_well

    async def _tell(self, agent: Agent, chapter: TourChapter) -> bool:
        if change := chapter.somebody_changes:
            file = self._project / change.file
            file.write_text(file.read_text("utf-8").replace(change.old, change.new), "utf-8")
        self._page.says("you", chapter.prompt)
        telling = self._telling = ChapterRenderer(self._page, chapter)
        async for event in agent.run(chapter.prompt):
            telling.show(event, agent.session)
        self.calls += len(telling.ends)
        is_undone = await self._undo(agent.session) if chapter.undoes else True
        return telling.is_as_foretold and is_undone

    async def _undo(self, session: Session) -> bool:
        """Undo the last change and return whether every file of the story is restored."""
        self._page.gap()
        self._page.line(f"In the project now: {self._listed()}")
        self._page.gap()
        self._page.line("await session.undo()", "warning")
        result = await session.undo()
        self._page.result(session, result, {})
        self._page.line(f"In the project now: {self._listed()}")
        return result.ok and all((self._project / name).is_file() for name in self._story.files)

    async def _answer(self, request: PermissionRequest) -> Allow | Deny:
        assert self._telling is not None
        return await self._telling.answer(request)

    def _write_files(self) -> None:
        for name, content in self._story.files.items():
            file = self._project / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")

    def _listed(self) -> str:
        return ", ".join(
            sorted(each.name + "/" * each.is_dir() for each in self._project.iterdir())
        )


def _build_path() -> str:
    """The search path, with the Python that runs the tour as `python3`."""
    own = str(Path(sys.executable).parent)
    return os.pathsep.join((own, os.environ.get("PATH", os.defpath)))


class ChapterRenderer:
    """Prints events and records the ends of calls."""

    def __init__(self, page: TourPage, chapter: TourChapter) -> None:
        self._page = page
        self._chapter = chapter
        self._answers = list(chapter.answers)
        self._calls: list[ToolCall] = []
        self._seen: dict[str, asyncio.Event] = defaultdict(asyncio.Event)
        self._shown: set[str] = set()
        self._results: dict[str, ToolResult] = {}
        self._said = ""
        self._turn_began_s = time.perf_counter()
        self.ends: list[str] = []
        self.is_success = False

    @property
    def is_as_foretold(self) -> bool:
        """Whether the chapter ended as expected and every question was asked."""
        return self.is_success and tuple(self.ends) == self._chapter.ends and not self._answers

    def show(self, event: AgentEvent, session: Session) -> None:
        """Print one event."""
        match event:
            case TextDelta():
                self._said += event.text
            case ToolCalled():
                self._print_speech()
                self._calls.append(event.call)
                self._seen[event.call.id].set()
            case ToolAnswered():
                self._results[event.result.id] = event.result
            case FromAgent():
                self._show_agent(event)
            case TurnEnded():
                self._print_speech()
                self._end_turn(session)
            case RunFinished():
                self.is_success = event.subtype == "success"
                if not self.is_success:
                    self._page.line("\n".join((event.result, *event.errors)), "bad")
            case _:
                pass

    async def answer(self, request: PermissionRequest) -> Allow | Deny:
        """Print a question and give the answer of the chapter."""
        # The question may arrive before the event of its call.
        await self._seen[request.call_id].wait()
        self._show_call(ToolCall(request.call_id, request.tool, request.input))
        typed = self._answers.pop(0) if self._answers else "n"
        self._page.question(request, typed)
        return read_answer(typed, request) or Deny("The tour did not expect this question.")

    def _print_speech(self) -> None:
        if self._said:
            self._page.gap()
            self._page.says("model", self._said)
        self._said = ""

    def _show_call(self, call: ToolCall) -> None:
        if call.id not in self._shown:
            self._shown.add(call.id)
            self._page.call(call.tool, call.input)

    def _show_agent(self, event: FromAgent) -> None:
        for call in self._calls:
            if call.id == event.call_id:
                self._show_call(call)
        match event.event:
            case ToolCalled(call=call):
                self._page.call(call.tool, call.input, who=event.agent_type)
            case ToolAnswered(result=result) if not result.ok:
                self.ends.append(f"{event.agent_type}: {result.code}")
            case _:
                pass

    def _end_turn(self, session: Session) -> None:
        took_s = time.perf_counter() - self._turn_began_s
        results = [self._results[call.id] for call in self._calls]
        for call, result in zip(self._calls, results, strict=True):
            self._show_call(call)
            self._page.result(session, result, call.input)
            self.ends.append("ok" if result.ok else result.code or "failed")
        if self._chapter.is_timed and len(results) > 1:
            alone_s = sum(result.duration_ms for result in results) / 1000
            self._page.gap()
            self._page.line(
                f"{len(results)} calls in {took_s:.1f} s; their times add up to {alone_s:.1f} s.",
                "good",
            )
        self._calls.clear()
        self._results.clear()
        self._turn_began_s = time.perf_counter()
