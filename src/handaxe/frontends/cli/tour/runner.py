"""Walking through the story: one session, one agent, a prompt per chapter."""

import os
import sys
from pathlib import Path

from handaxe.agent.subagents.definitions import list_builtin_definitions
from handaxe.app.agent import Agent
from handaxe.app.session import Session
from handaxe.contract.decision import Allow, Deny, PermissionRequest
from handaxe.frontends.cli.tour.page import TourPage
from handaxe.frontends.cli.tour.page__story import TourChapter, TourStory
from handaxe.frontends.cli.tour.runner__telling import ChapterRenderer


class TourRunner:
    """The way through one story, in one project."""

    def __init__(self, story: TourStory, project: Path, page: TourPage) -> None:
        self._story = story
        self._project = project
        self._page = page
        self._telling: ChapterRenderer | None = None
        self.calls = 0
        """How many calls were made."""

    async def go(self, home: Path) -> bool:
        """Tell every chapter; whether all of them ended as the story says."""
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
        # Given like this they count before files of the same name in the user's directory.
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
        """Put the last change back; whether every file of the story is there again."""
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
