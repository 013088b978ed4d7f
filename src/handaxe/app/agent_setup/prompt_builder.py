"""The system prompt and first message of an agent, built when it starts."""

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from handaxe.agent.loop_context import LoopContext
from handaxe.agent.memory.instruction_files import InstructionFiles, InstructionPaths
from handaxe.agent.memory.nested_memory import notify_instructions_loaded
from handaxe.agent.memory.persistent_memory import get_project_memory
from handaxe.agent.system_prompt import (
    Environment,
    MemoryText,
    PromptParts,
    build_context_text,
    build_system_prompt,
)
from handaxe.app.session import Session, get_parts
from handaxe.config.settings import AttributionOptions
from handaxe.contract.decision import Allow, PermissionRequest
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.agents import AgentDefinition
from handaxe.contract.ports.model import ToolSpec
from handaxe.disk.errors import DiskFault
from handaxe.disk.threads import run_in_thread
from handaxe.disk.versions import Version, read_version
from handaxe.git.discovery import UnclearRepository, describe_head, find_repository
from handaxe.storage.home import MANAGED_DIRECTORIES, get_user_directories

ADDED_VARIABLE = "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD"
"""If 1, instructions of added working directories count, too."""
SKILL_CHARS = 1_536
ALL_SKILLS_CHARS = 8_000


class PromptOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of a host for the system prompt."""

    replace: str | None = None
    append: str = ""
    append_for_agents: str = ""
    """Text at the end of subagents' prompts."""
    style: str = ""
    style_is_whole: bool = False
    memory: bool = True
    apart: bool = False
    """Whether machine-specific context is in the first message, so that prompts are equal on all
    machines.
    """


class SharedPromptContext(msgspec.Struct, frozen=True):
    """The parts of the prompt that subagents share."""

    environment: Environment
    memory: tuple[MemoryText, ...] = ()
    files: InstructionFiles | None = None
    append: str = ""


class SystemPromptBuilder:
    """The system prompt of one agent; its environment is read once."""

    def __init__(self, session: Session, model: str, options: PromptOptions) -> None:
        self._session = session
        self.model = model
        self._options = options
        self._environment: Environment | None = None
        self._memory: tuple[MemoryText, ...] = ()
        self._files: InstructionFiles | None = None
        self._workplace: LoopContext | None = None
        self._notes: tuple[str, ...] | None = None
        self._remembered = ""
        self._last: tuple[PromptParts, tuple[str, ...]] | None = None
        self.kinds: tuple[AgentDefinition, ...] = ()
        self.problems: tuple[str, ...] = ()

    async def load(self, workplace: LoopContext) -> tuple[str, ...]:
        """Read the environment and the project once and return notices for the user."""
        if self._environment is not None:
            return ()
        self._workplace = workplace
        self._environment = describe_environment(self._session, self.model)
        if self._options.apart:
            self._add_context_reminder(workplace)
        session, workdir = self._session, self._session.workdir
        if not (self._options.memory and get_parts(session).configuration.discovery.instructions):
            return self.problems
        sources = get_parts(session).configuration.sources
        places = InstructionPaths(
            directory=workdir.current,
            project=workdir.root,
            home=workdir.home,
            managed=MANAGED_DIRECTORIES,
            users=get_user_directories() if "user" in sources else (),
            scopes=tuple(scope for scope in ("project", "local") if scope in sources),
            added=workdir.roots[1:] if os.environ.get(ADDED_VARIABLE) == "1" else (),
            excludes=session.settings.claude_md_excludes,
        )
        imports = ExternalIncludes(session)
        self._files = InstructionFiles(
            get_parts(session).pipeline_context.files, places, imports.allows
        )
        found = await self._files.load()
        self._memory = found.texts
        for text in found.texts:
            notify_instructions_loaded(get_parts(session).pipeline_context, text, "session_start")
        if "user" in sources:
            self._remember()
        if workplace.nearby is not None:
            await workplace.nearby.follow(self._files.copy(workdir.current))
        return (*self.problems, *found.notes)

    def _add_context_reminder(self, workplace: LoopContext) -> None:
        """Keep the context of the first message in summaries."""
        earlier = workplace.reminders

        async def reminders() -> Sequence[str]:
            return (self.context, *await earlier())

        workplace.reminders = reminders

    def _remember(self) -> None:
        """Add the notes of earlier sessions, unchanged during the session for the cache."""
        memory = get_project_memory(self._session.settings, self._session.workdir.root)
        if memory is not None:
            memory.open_in(self._session.workdir)
            self._remembered = memory.note()

    def session_context(self) -> SharedPromptContext:
        """The context of a subagent, and what it may get later."""
        environment = self._environment or describe_environment(self._session, self.model)
        return SharedPromptContext(
            environment, self._memory, self._files, self._options.append_for_agents
        )

    def _noted(self) -> tuple[str, ...]:
        """The environment, read at the first request: a hook may have added to it."""
        if self._notes is None and self._workplace is not None:
            self._notes = self._workplace.notes()
        settings = self._session.settings
        language = settings.language
        wish = f"# Language\n\nTalk to the person in {language}." if language else ""
        remembered = "" if self._options.apart else self._remembered
        wishes = (remembered, wish, _format_attribution(settings.attribution))
        return (*(self._notes or ()), *filter(None, wishes))

    @property
    def context(self) -> str:
        """Context at the start of the first message, usually empty."""
        if not self._options.apart or self._environment is None:
            return ""
        return build_context_text(self._environment, self._memory, (self._remembered,))

    def system(self, specs: Sequence[ToolSpec]) -> tuple[str, ...]:
        """The prompt for these tools; the same object while nothing changes."""
        parts = self.list_parts(specs)
        if self._last is None or self._last[0] != parts:
            self._last = parts, build_system_prompt(parts)
        return self._last[1]

    def list_parts(self, specs: Sequence[ToolSpec]) -> PromptParts:
        """The parts of the prompt for these tools."""
        environment = self._environment or describe_environment(self._session, self.model)
        if environment.model != self.model:
            environment = msgspec.structs.replace(environment, model=self.model)
        apart = self._options.apart
        return PromptParts(
            tools=tuple(spec.name for spec in specs),
            environment=None if apart else environment,
            memory=() if apart else self._memory,
            kinds=self.kinds,
            notes=self._noted(),
            style=self._options.style,
            style_is_whole=self._options.style_is_whole,
            replace=self._options.replace,
            append=self._options.append,
        )


def _format_attribution(options: AttributionOptions) -> str:
    """Instructions for attribution lines in commits and pull requests."""
    wanted = (
        ("every commit message you write", options.commit),
        ("every description of a pull request you write", options.pr),
    )
    lines = [f"End {what} with these lines:\n\n{text}" for what, text in wanted if text.strip()]
    return "\n\n".join(("# Attribution", *lines)) if lines else ""


def describe_environment(session: Session, model: str) -> Environment:
    """The environment: directory, platform and date."""
    return Environment(
        directory=session.workdir.current,
        more_directories=session.workdir.roots[1:],
        platform=f"{platform.system()} {platform.release()}",
        date=time.strftime("%Y-%m-%d"),
        git=find_head(session.workdir.current) if session.settings.include_git_instructions else "",
        model=model,
    )


def find_head(directory: str) -> str:
    """The current branch, read without running git; empty outside a repository."""
    try:
        found = find_repository(directory)
    except UnclearRepository:
        return ""
    return describe_head(found) if found is not None else ""


class ExternalIncludes:
    """Asks the user about imports; a lasting answer is stored with the trust in the folder."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._answers: dict[str, bool] = {}

    async def allows(self, importer: str, path: str) -> bool:
        """Whether a file may be imported; without a user it may not."""
        if path not in self._answers:
            digest = await run_in_thread(lambda: _hash_file(path))
            is_known = bool(digest) and self._is_approved(path, digest)
            self._answers[path] = is_known or await self._ask(importer, path, digest)
        return self._answers[path]

    def _is_approved(self, path: str, digest: str) -> bool:
        configuration = get_parts(self._session).configuration
        try:
            return configuration.trust.is_import_approved(configuration.root, path, digest)
        except SetupError:
            return False

    async def _ask(self, importer: str, path: str, digest: str) -> bool:
        asker = get_parts(self._session).pipeline_context.asker
        if asker is None or not asker.is_there:
            return False
        request = PermissionRequest(
            call_id="instructions",
            tool="Read",
            input={"file_path": path},
            reason=(
                f"{importer} imports {path}, which is outside the project, into the "
                "instructions that the agent gets."
            ),
            cwd=self._session.workdir.current,
        )
        answer = await asker.ask(request)
        if not isinstance(answer, Allow):
            return False
        if digest and answer.remember in {"project", "always"}:
            configuration = get_parts(self._session).configuration
            with suppress(SetupError):
                configuration.trust.approve_import(configuration.root, path, digest)
        return True


def _hash_file(path: str) -> str:
    """The digest of a file's content; empty if it cannot be read."""
    try:
        version = read_version(os.path.realpath(path))
    except (OSError, DiskFault):
        return ""
    return version.digest if isinstance(version, Version) else ""
