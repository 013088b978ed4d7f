"""The settings of one project as they are now: files, arguments and trust joined.

Nothing here acts on an option; a session and the command line ask for what is in force.
"""

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from handaxe.config.env_vars import read_env_settings
from handaxe.config.files import SettingsFile, SettingsFiles
from handaxe.config.keys import BadSettingsJson, KeyPath
from handaxe.config.layers import IgnoredSetting, merge
from handaxe.config.rule_cache import RuleCache
from handaxe.config.settings import Settings
from handaxe.config.settings_paths import SCOPES, get_own_file, list_settings_paths, parse_sources
from handaxe.config.source import (
    SettingEntry,
    SettingsFragment,
    SettingsProblem,
    Source,
    read_data,
    read_text,
)
from handaxe.config.trust import FROM_THE_PROJECT, RequestFinder, Trust, build_trust_request
from handaxe.contract.faults import SetupError
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.settings_store import Scope
from handaxe.rules.grammar import parse_rule
from handaxe.rules.tool_families import is_foreign
from handaxe.session.permission_state import RuleBehaviour, SourcedRule
from handaxe.storage.home import explain_temporary_home, list_own_paths
from handaxe.text.redact import Redactor

if TYPE_CHECKING:
    from handaxe.config.settings_store import SettingFiles
    from handaxe.config.trust_gate import ProjectGate
    from handaxe.config.trust_store import TrustRecord
    from handaxe.contract.trust_gate import TrustRequest


Given = Settings | Mapping[str, Any] | SettingsFragment | None
"""Settings as a host program or the command line hands them over."""

FILE_SOURCES: tuple[Source, ...] = ("user", "project", "local", "policy")
_BEHAVIOURS: tuple[RuleBehaviour, ...] = ("deny", "ask", "allow")


class Configuration:
    """The settings of a project, their sources and their problems."""

    def __init__(
        self,
        root: str,
        *,
        home: Path,
        given: Given = None,
        sources: str | Sequence[str] | None = None,
        trusted: bool | None = None,
        find_requests: RequestFinder,
    ) -> None:
        """`root` is a real path; `trusted` is the user's decision unless it is None."""
        if not isinstance(cast("object", trusted), bool | None):
            # Any text is true, "no" as well.
            raise SetupError(f"`trusted` is True, False or None, not {trusted!r}.")
        self.root = root
        self._home = home
        self._flags = read_given(given, where="the session's arguments")
        self._trusted = trusted
        self._find_requests = find_requests
        self.sources = parse_sources(sources)
        self._files = SettingsFiles(list_settings_paths(root, self.sources), RuleCache(home))
        self.changed_files: tuple[str, ...] = ()
        """Settings files that changed in the last reload."""
        self.discovery = EVERYTHING
        """Which files count beside those of settings."""
        self.pending: tuple[str, ...] = ()
        """Changed files whose change has to be approved first."""
        self.holds: Callable[[], bool] = lambda: False
        """Whether such changes have to be approved."""
        self._merge_layers()

    @cached_property
    def trust(self) -> "TrustRecord":
        """The user's word on folders."""
        from handaxe.config.trust_store import TrustRecord

        return TrustRecord(self._home)

    @cached_property
    def gate(self) -> "ProjectGate":
        """Grants the approved requests of the project's files."""
        from handaxe.config.trust_gate import ProjectGate

        gate = ProjectGate(
            self.root, lambda: self.trust, self._find_requests, trusted=self._trusted
        )
        fragments = self._files.list_fragments()
        gate.hear(fragments, is_listed=self.root in _find_trusted_folders(fragments))
        return gate

    @property
    def is_trusted(self) -> bool:
        """Whether the user, the host program or the user's settings trust the folder."""
        return self.gate.is_trusted

    @cached_property
    def redactor(self) -> Redactor:
        """Takes the secrets of this process and of the settings out of what a session keeps."""
        shell = self.settings.shell
        listed = (*shell.pass_variables, *shell.hidden_variables)
        redactor = Redactor(os.environ, listed, is_file=os.path.lexists)
        redactor.learn(self.settings.env)
        return redactor

    @cached_property
    def own_places(self) -> tuple[str, ...]:
        """Where data and settings of handaxe and its ecosystem lie, no part of any root."""
        return list_own_paths(self._home)

    @property
    def data_directory(self) -> str:
        """Where handaxe keeps its own files."""
        return os.path.realpath(self._home)

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.merged.settings

    @property
    def files(self) -> tuple[SettingsFile, ...]:
        """Every file there is or could be, lowest layer first."""
        return self._files.files

    def refresh(self) -> tuple[str, ...]:
        """Read changed settings files again and return them. Cheap if nothing changed."""
        changed = self._files.refresh()
        if changed:
            self.changed_files = changed
            if self.holds():
                self.pending = tuple(dict.fromkeys((*self.pending, *changed)))
            else:
                self.settle()
        return changed

    def settle(self, refused: Collection[str] = ()) -> None:
        """Let what the files say hold from now on, but for changes that were refused."""
        self.pending = ()
        self._files.settle(refused)
        self._merge_layers()

    def rules(self, source: Source) -> list[SourcedRule]:
        """The rules of one layer."""
        found = [
            SourcedRule(entry.value, behaviour, source, entry.origin.file, entry.origin.line)
            for behaviour in _BEHAVIOURS
            for entry in self.merged.entries.get(("permissions", behaviour), ())
            if entry.origin.source == source and entry.kind == "item"
        ]
        if not any(map(_can_be_answer, found)):
            return found
        self._files.add_watched_file(self.trust.path)
        return [self._bind_rule(rule) if _can_be_answer(rule) else rule for rule in found]

    def _bind_rule(self, rule: SourcedRule) -> SourcedRule:
        """The rule with the servers' tools it was given for, if it was given as an answer."""
        file = rule.file or ""
        try:
            if rule.text not in self.trust.rules().get(file, {}):
                return rule
            approved = self.trust.approvals().get(file, {}).get(rule.text, ())
        except SetupError:
            approved = ()
        return msgspec.structs.replace(rule, approved=approved)

    def directories(self) -> tuple[list[str], list[str]]:
        """More working directories, and what is wrong with those that files name."""
        found: list[str] = []
        problems: list[str] = []
        for entry in self.merged.entries.get(("permissions", "additionalDirectories"), ()):
            if entry.kind != "item":
                continue
            path = str(Path(self.root) / Path(entry.value).expanduser())
            if entry.origin.file is None or Path(path).is_dir():
                found.append(path)
            else:
                problems.append(f"{entry.origin}: {path} is not a directory, so it is left out.")
        return found, problems

    def store(self, files: Files) -> "SettingFiles":
        """The port by which single settings are read and changed."""
        from handaxe.config.settings_store import SettingFiles

        own: dict[Scope, str] = {
            scope: _resolve_settings_path(get_own_file(self.root, scope), scope) for scope in SCOPES
        }
        return SettingFiles(
            files,
            own,
            view=lambda: self.merged,
            changed=self._take_change,
            complaints=find_rule_problems,
        )

    def read_list(self, file: str, path: KeyPath) -> list[str]:
        """The entries of a list in the files now, whether or not they count yet."""
        found = self._read_entries(file, "user")
        return [e.value for e in found if e.path == path and e.kind == "item"]

    def _read_entries(self, file: str, source: Source) -> Sequence[SettingEntry]:
        try:
            text = Path(file).read_text(encoding="utf-8")
            return read_text(text, source=source, file=file).entries
        except (OSError, UnicodeDecodeError, BadSettingsJson):
            # Whoever goes on to change the file is told what is wrong with it.
            return ()

    def find_requests(self) -> "list[TrustRequest[Any]]":
        """All that the project's files want done now."""
        return self._find_requests(self.root, self._files.list_fragments())

    def find_pending_requests(self) -> "list[TrustRequest[Any]]":
        """The parts that wait for approval; servers ask one by one when they could start."""
        known = self.gate.approved()
        waiting = {
            build_trust_request(one.entry, self.root).key
            for one in self.merged.ignored
            if one.why in {"untrusted", "changed"}
        }
        return [
            wish
            for wish in self.find_requests()
            if wish.key in waiting
            or (
                wish.key.startswith(("skill:", "agent:"))
                and not wish.is_empty
                and known.get(wish.key) != wish.note
            )
        ]

    def _take_change(self, path: KeyPath, added: Collection[str], scope: Scope) -> None:
        """A value was written with the user's yes: in a trusted folder it counts."""
        if scope in FROM_THE_PROJECT and self.is_trusted:
            file = get_own_file(self.root, scope)
            self.gate.approve(
                wish
                for entry in self._read_entries(file, scope)
                if entry.path == path
                and (wish := build_trust_request(entry, self.root)).note in added
            )
        self.refresh()

    def _merge_layers(self) -> None:
        fragments = self._files.list_fragments()
        at = next(
            (n for n, found in enumerate(fragments) if found.source == "policy"), len(fragments)
        )
        fragments.insert(at, self._flags)
        fragments.insert(0, read_data(read_env_settings(os.environ), source="user"))
        told: list[str] = []
        trust = self._trust(fragments, told)
        self.unknown_files = self._files.unknown()
        self.merged = merge(fragments, trust, files_may_allow=not self.unknown_files)
        told += [str(problem) for problem in self._files.problems()]
        if self.merged.ignored:
            told += describe_ignored(self.merged.ignored, trust)
        if (unsteady := explain_temporary_home(self._home)) is not None:
            told.append(unsteady)
        self.warnings = tuple(told)
        if "redactor" in self.__dict__:
            self.redactor.learn(self.settings.env)

    def _trust(self, fragments: Sequence[SettingsFragment], told: list[str]) -> Trust:
        """How far the project's own files of settings may widen."""
        if not any(fragment.source in FROM_THE_PROJECT for fragment in fragments):
            if self._trusted and "gate" not in self.__dict__:
                # The host's word is for the files as they are now.
                _ = self.gate
            return Trust()
        self._files.add_watched_file(self.trust.path)
        gate = self.gate
        gate.hear(fragments, is_listed=self.root in _find_trusted_folders(fragments))
        if self._trusted is False:
            return Trust(root=self.root)
        try:
            rules = self.trust.rules()
        except SetupError as error:
            told.append(str(error))
            rules = {}
        return Trust(gate.is_trusted, gate.approved(), rules, self.root)


def read_given(given: object, *, where: str) -> SettingsFragment:
    """Settings that were handed over; a mistake in them is an error, not a warning."""
    if isinstance(given, SettingsFragment):
        fragment = given
    elif isinstance(given, Settings):
        fragment = read_data(msgspec.to_builtins(given))
    elif given is None or isinstance(given, Mapping):
        fragment = read_data(cast("Mapping[str, Any]", given or {}))
    else:
        raise SetupError(f"The settings from {where} are a dict or a Settings, not {given!r}.")
    if fragment.problems:
        listed = "\n".join(f"  {_format_problem(problem)}" for problem in fragment.problems)
        raise SetupError(f"The settings from {where} are wrong:\n{listed}")
    return fragment


def find_rule_problems(path: KeyPath, value: object) -> list[str]:
    """The problems of rules that are to be set."""
    behaviour: RuleBehaviour | None = next(
        (name for name in _BEHAVIOURS if path == ("permissions", name)), None
    )
    if behaviour is None or not isinstance(value, list):
        return []
    texts = [text for text in cast("list[object]", value) if isinstance(text, str)]
    problems = [parse_rule(text, behaviour).problem for text in texts]
    return [problem for problem in problems if problem]


def _find_trusted_folders(fragments: Sequence[SettingsFragment]) -> set[str]:
    return {
        os.path.realpath(Path(entry.value).expanduser())
        for fragment in fragments
        if fragment.source not in FROM_THE_PROJECT
        for entry in fragment.entries
        if entry.path == ("trusted_folders",) and entry.kind == "item"
    }


def _can_be_answer(rule: SourcedRule) -> bool:
    """Whether it may hold for a server's tool as it was when it was approved."""
    return rule.behaviour == "allow" and rule.file is not None and is_foreign(rule.text)


def _format_problem(problem: SettingsProblem) -> str:
    line = problem.origin.line
    if problem.origin.file is not None:
        return str(problem)
    return problem.text if line is None else f"line {line}: {problem.text}"


def _resolve_settings_path(path: str, scope: Scope) -> str:
    """Links of the user's own lead where the user wants; a project's links are not followed."""
    return os.path.realpath(path) if scope == "user" else path


class Discovery(msgspec.Struct, frozen=True, kw_only=True):
    """Which of these files count; arguments of a session always count."""

    skills: Literal["all", "added", "none"] = "all"
    """`added`: only skills of directories that were added by hand."""
    only_skills: frozenset[str] | None = None
    """The names of the discovered skills that the session uses, or None for all."""
    agents: bool = True
    styles: bool = True
    instructions: bool = True


EVERYTHING = Discovery()
ADDED_SKILLS = Discovery(skills="added", agents=False, styles=False, instructions=False)
NOTHING = Discovery(skills="none", agents=False, styles=False, instructions=False)


_SHOWN_CHARS = 200


def describe_ignored(ignored: Sequence[IgnoredSetting], trust: Trust) -> list[str]:
    """One sentence for what waits for trust, and one for each value that can never count."""
    waiting = [one.entry for one in ignored if one.why == "untrusted"]
    changed = [one.entry for one in ignored if one.why == "changed"]
    told: list[str] = []
    if waiting:
        told.append(_describe_untrusted(waiting, trust.root))
    if changed:
        told.append(_describe_changed(changed, trust))
    never = [one.entry for one in ignored if one.why == "never"]
    told += [f"{entry.origin}: {_describe_forbidden(entry)}" for entry in never]
    weakening = [one.entry for one in ignored if one.why == "managed"]
    return told + [
        f"{entry.origin}: `{entry.name}` does not count: managed settings turn the sandbox on, "
        "and only they may weaken it."
        for entry in weakening
    ]


def _describe_untrusted(entries: list[SettingEntry], root: str) -> str:
    from shlex import quote

    counts: dict[str, int] = {}
    for entry in entries:
        name = ".".join(entry.path[:1] if entry.path[0] in {"hooks", "env"} else entry.path)
        counts[name] = counts.get(name, 0) + 1
    names = ", ".join(f"`{name}` ({n})" if n > 1 else f"`{name}`" for name, n in counts.items())
    return (
        f"{_format_files(entries)}: this workspace has not been trusted, so {names} "
        f"{'does' if len(counts) == 1 else 'do'} not count. "
        f"If you trust these files, run `handaxe trust {quote(root)}`."
    )


def _describe_changed(entries: list[SettingEntry], trust: Trust) -> str:
    """The new or changed content since the user gave trust."""
    from shlex import quote

    told: list[str] = []
    for entry in entries:
        wish = build_trust_request(entry, trust.root)
        earlier = trust.approved.get(wish.key)
        was = "new" if earlier is None else f"was {_truncate(earlier)}"
        told.append(f"`{entry.name}` = {_truncate(wish.note)} ({was})")
    return (
        f"{_format_files(entries)}: what changed since this workspace was trusted does not count: "
        f"{', '.join(told)}. If you trust the change, run `handaxe trust {quote(trust.root)}`."
    )


def _format_files(entries: list[SettingEntry]) -> str:
    return ", ".join(dict.fromkeys(str(entry.origin.file) for entry in entries))


def _truncate(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else f"{text[:_SHOWN_CHARS]}..."


def _describe_forbidden(entry: SettingEntry) -> str:
    source = entry.origin.source
    if source in {"project", "local"}:
        return f"`{entry.name}` does not count: a project's own files may not set it so."
    return f"`{entry.name}` does not count here: only managed settings may say that."
