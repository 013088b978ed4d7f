"""The hooks of a session: from settings and arguments, kept up to date."""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from handaxe.config.file_watch import Stamp, read_stamp
from handaxe.config.layers import MergedSettings
from handaxe.config.project import Configuration
from handaxe.config.settings import Settings
from handaxe.config.trust import FROM_THE_PROJECT
from handaxe.contract.call import IS_STARTING
from handaxe.contract.events import Event, SkillHooksEntered
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.skills import SkillInfo
from handaxe.hooks.notify import build_session_event, fire_hooks, notify_hooks
from handaxe.hooks.service import Hooks
from handaxe.pipeline.context import PipelineContext
from handaxe.storage.sessions import SessionHistory

if TYPE_CHECKING:
    from handaxe.app.start import SessionStart
    from handaxe.contract.ports.hooks import HookPrograms
    from handaxe.contract.ports.mcp_servers import McpServers
    from handaxe.hooks.config import HookConfig
    from handaxe.hooks.external import HookPolicy
    from handaxe.session.invoked_skills import SkillHooks
    from handaxe.session.port_registry import PortRegistry


CLOSING_VARIABLE = "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS"
QUESTIONS = "AskUserQuestion"
HookArguments = Mapping[str, Sequence[Any]] | None
"""Hooks of a host: groups as in settings, or async functions."""


class SessionHooks:
    """The hooks of one session from all sources."""

    def __init__(
        self,
        arguments: HookArguments,
        configuration: Configuration,
        *,
        emit: Callable[[Event], object],
        keep: Callable[[str, str], str],
    ) -> None:
        self._configuration = configuration
        self._emit = emit
        self._own = None if arguments is None else _validate_hooks(arguments)
        self._skills: dict[str, HookConfig] = {}
        self._had_any = self._answers_questions = False
        self._joined: object = None
        self._start: asyncio.Future[None] | None = None
        self._asking: asyncio.Future[None] | None = None
        self._is_holding = False
        self._context: PipelineContext | None = None
        self._follow: Callable[[], None] = lambda: None
        self._programs: HookPrograms | None = None
        self._watched: FileWatcher | None = None
        self.is_watching = False
        """Whether files must be checked before every call."""
        self.problems: tuple[str, ...] = ()
        self.first_message: str | None = None
        """The first prompt from a SessionStart hook."""
        self.hooks = Hooks(emit=emit, keep=lambda text: keep("hook", text))
        self.follow()

    def follow(self) -> None:
        """Apply changed settings; cheap if nothing changed."""
        merged = self._configuration.merged
        if self._configuration.pending or (
            self.hooks.watches("ConfigChange") and self._has_skill_news()
        ):
            self._hold_calls()
        if self._watched is not None:
            self._tell_changes(self._watched)
        if merged is self._joined:
            return
        self._joined = merged
        self._had_any = self._had_any or self._own is not None or bool(merged.hooks)
        if self._had_any:
            self._configure(merged)

    def _has_skill_news(self) -> bool:
        """Whether skill files changed."""
        if self._context is None:
            return False
        from handaxe.contract.ports.skills import Skills

        skills: Skills | None = self._context.ports.get(Skills)
        return skills is not None and bool(skills.news())

    def _configure(self, merged: MergedSettings) -> None:
        from handaxe.hooks.config import HookConfig, find_bad_conditions, read_hooks

        book = HookConfig()
        for found in merged.hooks:
            read = read_hooks(
                {found.event: [found.group]},
                source=str(found.origin),
                is_projects=found.origin.source in FROM_THE_PROJECT,
            )
            problems = (*read.problems, *find_bad_conditions(read))
            book += HookConfig(read.placed, tuple(f"{found.origin}: {text}" for text in problems))
        self.problems = book.problems
        everybody = book.placed if self._own is None else (*book.placed, *self._own.placed)
        self._answers_questions = any(
            placed.event == "PreToolUse" and QUESTIONS in placed.matcher for placed in everybody
        )
        if self._own is not None:
            book += self._own
        for skill in self._skills.values():
            book += skill
        policy = build_hook_policy(merged.settings, self._configuration.root)
        self._watched = self._watch(book)
        if self._watched is not None:
            policy = msgspec.structs.replace(policy, watch=self._watched.watch)
        self.hooks.configure(book, policy, self._outside(book))
        if self._watched is not None or self.hooks.watches("ConfigChange"):
            self.is_watching = True

    def _create_skill_hooks(self) -> "SkillHooks":
        from handaxe.session.invoked_skills import SkillHooks

        return SkillHooks(self._take_skill)

    def _take_skill(self, skill: "SkillInfo", *, is_new: bool = True) -> str | None:
        """Enable the hooks of a skill; problems, if there are any."""
        book = read_skill_hooks(skill, self._configuration)
        if book.placed:
            if is_new and skill.path not in self._skills:
                self._emit(SkillHooksEntered(name=skill.name, path=skill.path))
            self._skills[skill.path] = book
            self._had_any = True
            self._configure(self._configuration.merged)
        return " ".join(book.problems) or None

    def resume(self, history: SessionHistory) -> None:
        """Enable the current hooks of skills that ran before."""
        if not history.skill_hooks or self._context is None:
            return
        from handaxe.contract.ports.skills import Skills

        skills: Skills = self._context.ports[Skills]
        known = {(skill.name, skill.path): skill for skill in skills.all()}
        again = [known.get((entered.name, entered.path)) for entered in history.skill_hooks]
        for skill in filter(None, again):
            refused = self._configuration.gate.refusal(skill.powers)
            told = (refused, self._take_skill(skill, is_new=False))
            self.problems += tuple(filter(None, told))
        self.hooks.resume(history.skill_hooks_run)

    def _watch(self, book: "HookConfig") -> "FileWatcher | None":
        """The watcher of files between calls; None without FileChanged hooks."""
        matchers = [placed.matcher for placed in book.placed if placed.event == "FileChanged"]
        if not matchers:
            return None

        directory = self._configuration.root
        if self._context is not None:
            directory = self._context.workdir.current
        return FileWatcher(matchers, directory, self._watched.named if self._watched else ())

    def _tell_changes(self, watched: "FileWatcher") -> None:
        if self._context is not None:
            for path, what in list(watched.changes(self._context.workdir.current)):
                notify_hooks(self._context, "FileChanged", file_path=path, event=what)

    def join(
        self,
        context: PipelineContext,
        start: "SessionStart | str",
        home: Path,
        servers: "McpServers | None",
        follow: Callable[[], None],
    ) -> None:
        """Let the first call wait for the SessionStart hooks.

        `home` has the names of sessions. `follow` applies changed settings to the session.
        """
        self._context, self._follow = context, follow
        self._configuration.holds = lambda: self.hooks.watches("ConfigChange")

        async def opening() -> None:
            if self._start is None:
                self._start = asyncio.ensure_future(self._begin(context, start, home))
            await asyncio.shield(self._start)
            if context.opening is opening:
                context.opening = None

        context.opening = opening
        cast("PortRegistry", context.ports).add(
            {"handaxe.session.invoked_skills.SkillHooks": self._create_skill_hooks}
        )
        self.hooks.servers = servers
        if self._answers_questions:
            from handaxe.permission.user_questions import enable_hook_answers

            enable_hook_answers(context.ports)

    async def end(self, context: PipelineContext, reason: str) -> None:
        """Run the SessionEnd hooks after a start, and close everything."""
        if self._asking is not None:
            self._asking.cancel()
        if self._start is not None:
            self._start.cancel()
            if self.hooks.watches("SessionEnd"):
                await self.hooks.fire(
                    {**build_session_event(context, "SessionEnd"), "reason": reason}
                )
        await self.hooks.close()

    async def _begin(
        self, context: PipelineContext, start: "SessionStart | str", home: Path
    ) -> None:
        if isinstance(start, str) and not context.hooks.watches("SessionStart"):
            return
        IS_STARTING.set(True)
        from handaxe.app.start import SessionStart, run_start_hooks
        from handaxe.storage.sessions import SessionTitle

        told = SessionStart(start) if isinstance(start, str) else start
        self.first_message = await run_start_hooks(
            context, told, SessionTitle(home, context.session_id)
        )

    def _hold_calls(self) -> None:
        """Let calls wait for the ConfigChange hooks."""
        context = self._context
        if context is None or self._is_holding:
            return
        self._is_holding = True
        earlier = context.opening

        async def asking() -> None:
            IS_STARTING.set(True)
            if earlier is not None:
                await earlier()
            if self._configuration.pending:
                refused = await find_refused_changes(context, self._configuration)
                self._configuration.settle(refused)
            await settle_skills(context)
            self._is_holding, self._asking, context.opening = False, None, None
            self._follow()

        async def opening() -> None:
            if self._is_holding:
                self._asking = self._asking or asyncio.ensure_future(asking())
                await asyncio.shield(self._asking)

        context.opening = opening

    def _outside(self, book: "HookConfig") -> "HookPrograms | None":
        """The programs and requests of hooks, made on first use."""
        from handaxe.hooks.config import CommandHook, HttpHook

        if self._programs is None and any(
            isinstance(placed.hook, CommandHook | HttpHook) for placed in book.placed
        ):
            from handaxe.hooks.local_runner import LocalHookPrograms

            self._programs = LocalHookPrograms()
        return self._programs


def _parse_closing_timeout(given_ms: str) -> float | None:
    return int(given_ms) / 1000 if given_ms.isdecimal() and int(given_ms) else None


def build_hook_policy(settings: Settings, root: str) -> "HookPolicy":
    """The environment and hosts of hook programs and servers."""
    from handaxe.config.env_vars import is_steering
    from handaxe.config.settings import split_prefix
    from handaxe.hooks.external import HookPolicy

    return HookPolicy(
        env={**settings.env, "CLAUDE_PROJECT_DIR": root, "HANDAXE_PROJECT_DIR": root},
        env_names=settings.shell.pass_variables,
        prefix=split_prefix(settings.shell),
        closing_s=_parse_closing_timeout(os.environ.get(CLOSING_VARIABLE, "")),
        http_urls=settings.allowed_http_hook_urls,
        http_env_names=settings.http_hook_allowed_env_vars,
        steers=is_steering,
    )


async def find_refused_changes(context: PipelineContext, configuration: Configuration) -> set[str]:
    """The changed files that a hook rejects; policy files cannot be rejected."""
    sources = {file.path: file.source for file in configuration.files}
    refused: set[str] = set()
    for path in configuration.pending:
        source = sources.get(path)
        if source is None:
            continue
        about = {"source": f"{source}_settings", "file_path": path}
        outcome = await fire_hooks(context, "ConfigChange", **about)
        if outcome.blocked is not None and source != "policy":
            refused.add(path)
    return refused


async def settle_skills(context: PipelineContext) -> None:
    """Apply changed skills, unless a hook rejects it."""
    from handaxe.contract.ports.skills import Skills

    skills: Skills | None = context.ports.get(Skills)
    if skills is None:
        return
    refused: set[str] = set()
    for path in skills.news():
        outcome = await fire_hooks(context, "ConfigChange", source="skills", file_path=path)
        if outcome.blocked is not None:
            refused.add(path)
    skills.settle(refused)


def _validate_hooks(arguments: Mapping[str, Sequence[Any]]) -> "HookConfig":
    from handaxe.hooks.config import ARGUMENTS, find_bad_conditions, read_hooks

    book = read_hooks(arguments, source=ARGUMENTS)
    problems = (*book.problems, *find_bad_conditions(book))
    if problems:
        listed = "\n".join(f"  {problem}" for problem in problems)
        raise SetupError(f"Invalid hooks in the session's arguments:\n{listed}")
    return book


def read_skill_hooks(skill: SkillInfo, configuration: Configuration) -> "HookConfig":
    """The hooks of a skill, if they may run, and problems."""
    from handaxe.hooks.config import HookConfig, find_bad_conditions, read_hooks

    settings = configuration.settings
    hooks = skill.powers.grant(configuration.gate).hooks
    if not hooks or settings.disable_all_hooks or settings.allow_managed_hooks_only:
        return HookConfig()
    is_projects = skill.powers.is_projects
    book = read_hooks(hooks, source=skill.path, is_projects=is_projects, skill=skill.path)
    told = (f"{skill.path}: {text}" for text in (*book.problems, *find_bad_conditions(book)))
    return HookConfig(book.placed, tuple(told))


Change = Literal["add", "change", "unlink"]
MAX_FILES = 1_000
"""Maximum watched files; each is checked before every call."""


class FileWatcher:
    """Files of matchers, in the session's directory, and files that hooks named."""

    def __init__(self, matchers: Iterable[str], directory: str, named: Iterable[str] = ()) -> None:
        names = (name.strip() for text in matchers for name in text.split("|"))
        self._names = tuple(name for name in names if name not in {"", "*"} and "/" not in name)
        self._directory = directory
        self.named = tuple(named)
        """The absolute paths that hooks named last."""
        self._stamps: dict[str, Stamp | None] = {}
        self._place()

    def watch(self, paths: object) -> None:
        """Watch these absolute paths, too; others are ignored."""
        given = cast("list[object]", paths) if isinstance(paths, list) else []
        self.named = tuple(p for p in given if isinstance(p, str) and p.startswith("/"))[:MAX_FILES]
        self._place()

    def changes(self, directory: str) -> Iterator[tuple[str, Change]]:
        """The file changes since the last check."""
        for path, before in self._stamps.items():
            now = read_stamp(path)
            if now != before:
                self._stamps[path] = now
                yield path, "add" if before is None else "unlink" if now is None else "change"
        if directory != self._directory:
            self._directory = directory
            self._place()

    def _place(self) -> None:
        known = self._stamps
        wanted = (*(f"{self._directory.rstrip('/')}/{name}" for name in self._names), *self.named)
        self._stamps = {path: known[path] if path in known else read_stamp(path) for path in wanted}
