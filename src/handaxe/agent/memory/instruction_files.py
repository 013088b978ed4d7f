"""Instruction files for an agent: CLAUDE.md, AGENTS.md and similar.

Files from the user's directories down to the working directory are always part of the context, with
their imports. Files further down, and rules for certain files, apply after such a file was read.
Notes report omitted files; no file is loaded twice.
"""

import re
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from handaxe.agent.system_prompt import MemoryText
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.files import Files
from handaxe.text.frontmatter import BadFrontmatter, parse_word_list, split_frontmatter
from handaxe.text.gitignore import BadGlobPattern
from handaxe.text.globs import GlobPattern
from handaxe.text.paths import is_inside, normalize

MAX_DEPTH = 4
MAX_FILE_BYTES = 4 << 20
MAX_CHARS = 40_000
"""The maximum shown size of one file."""
MAX_TOTAL_CHARS = 200_000

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(^|\n)(```|~~~).*?(?:\n\2|\Z)|`[^`\n]*`", re.DOTALL)
_IMPORT = re.compile(r"(?<![\w@`])@((?:~/|\.{0,2}/)?[^\s@`'\"<>()\[\]{},;]+)")
_IN_TEXT = re.compile(r"[\w./~-]+")
NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "CLAUDE.local.md")


class InstructionPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where to search."""

    directory: str
    """The agent's directory; files are searched from `/` down to it."""
    project: str
    """Imports below this directory need no approval."""
    home: str
    managed: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """The user's directories: `~/.claude`, `~/.handaxe`."""
    scopes: tuple[str, ...] = ("project", "local")
    """Which files of the project apply: shared ones, personal ones."""
    added: tuple[str, ...] = ()
    """Further directories whose files count as the project's."""
    excludes: tuple[str, ...] = ()
    """Excluded files: paths or patterns."""


class LoadedInstructions(msgspec.Struct, frozen=True):
    """The loaded files, and notes about omitted ones."""

    texts: tuple[MemoryText, ...] = ()
    notes: tuple[str, ...] = ()


class _Rule(msgspec.Struct, frozen=True):
    """A file that applies only to certain files."""

    path: str
    scope: str
    base: str
    """The base of its patterns."""
    patterns: tuple[GlobPattern, ...]
    text: str
    globs: tuple[str, ...] = ()


Allows = Callable[[str, str], Awaitable[bool]]
"""Whether a project file may import a file outside the project."""


async def _refuse(importer: str, path: str) -> bool:  # noqa: ARG001 - nobody is asked
    return False


class InstructionFiles:
    """The instruction files of one agent: permanent ones, and nested ones after reads."""

    def __init__(
        self, files: Files, places: InstructionPaths, allows_outside: Allows = _refuse
    ) -> None:
        self._files = files
        self._places = places
        self._allows_outside = allows_outside
        self._excludes = [_parse_pattern(text) for text in places.excludes]
        self._loaded: set[str] = set()
        self._visited = set(_list_ancestors(places.directory))
        self._rules: list[_Rule] = []
        self._texts: list[MemoryText] = []
        self._notes: list[str] = []
        self._reader = ""
        self._globs: tuple[str, ...] = ()
        self._chars = 0

    def copy(self, directory: str) -> "InstructionFiles":
        """A copy for another conversation in a directory, with only the permanent files loaded."""
        other = InstructionFiles(self._files, self._places, self._allows_outside)
        other._loaded, other._visited = (
            set(self._loaded),
            {*self._visited, *_list_ancestors(directory)},
        )
        other._rules, other._chars = list(self._rules), self._chars
        return other

    async def load_nested(self, paths: Sequence[str]) -> LoadedInstructions:
        """Files that apply because these files were read, and did not apply before."""
        self._texts, self._notes = [], []
        for path in paths:
            if not is_inside(path, self._places.project):
                continue
            self._reader = path
            for directory in _list_ancestors(path.rpartition("/")[0]):
                if directory not in self._visited:
                    self._visited.add(directory)
                    await self._take_directory(directory)
            due = [rule for rule in self._rules if _is_for(rule, path)]
            for rule in due:
                self._rules.remove(rule)
                self._globs = rule.globs
                await self._add(rule.path, rule.scope, rule.text, depth=0)
                self._globs = ()
        self._reader = ""
        return LoadedInstructions(tuple(self._texts), tuple(self._notes))

    async def again(self, paths: Sequence[str]) -> LoadedInstructions:
        """The texts of files that applied in an earlier run; they do not count as new."""
        self._texts, self._notes = [], []
        for path in paths:
            rule = next((rule for rule in self._rules if rule.path == path), None)
            if rule is not None:
                self._rules.remove(rule)
                await self._add(path, rule.scope, rule.text, depth=0)
            elif (text := await self._read(path)) is not None:
                await self._add(path, "project", _strip_frontmatter(text), depth=0)
        return LoadedInstructions(tuple(self._texts), tuple(self._notes))

    async def load(self) -> LoadedInstructions:
        """All permanent files for this directory, the most general first."""
        for directory in self._places.managed:
            await self._take(f"{directory}/CLAUDE.md", "managed")
        for directory in self._places.users:
            for name in ("CLAUDE.md", "AGENTS.md"):
                await self._take(f"{directory}/{name}", "user")
            await self._take_rules(f"{directory}/rules", "user", self._places.project)
        for directory in (*_list_ancestors(self._places.directory), *self._places.added):
            await self._take_directory(directory)
        return LoadedInstructions(tuple(self._texts), tuple(self._notes))

    async def _take_directory(self, directory: str) -> None:
        for name in NAMES:
            scope = "local" if name == "CLAUDE.local.md" else "project"
            if scope in self._places.scopes:
                await self._take(f"{directory}/{name}", scope)
        if "project" in self._places.scopes:
            await self._take_rules(f"{directory}/.claude/rules", "project", directory)

    def _is_excluded(self, path: str) -> bool:
        if any(is_inside(path, place) for place in self._places.excludes):
            return True
        return any(
            pattern.matches(path if pattern.is_absolute else path.removeprefix("/"))
            for pattern in self._excludes
            if pattern is not None
        )

    async def _take(self, path: str, scope: str) -> None:
        path = normalize(path)
        if scope != "managed" and self._is_excluded(path):
            return
        text = await self._read(path) if await self._can_load(path, scope) else None
        if text is not None:
            await self._add(path, scope, text, depth=0)

    async def _can_load(self, path: str, scope: str) -> bool:
        """Whether a file may be loaded; a project's link to another place counts as an import."""
        real = await self._look(path)
        if real is None or scope in {"user", "managed"}:
            return real is not None
        places = (path, path.rpartition("/")[0], self._places.project)
        if any(is_inside(real, place) for place in places):
            return True
        if await self._allows_outside(path, real):
            return True
        self._notes.append(
            f"{path} leads to {real}, which is outside the project: skipped, because it "
            "is not approved."
        )
        return False

    async def _add(
        self, path: str, scope: str, text: str, *, depth: int, importer: str = ""
    ) -> None:
        """Imports of a file come before it, so that the file takes precedence."""
        text = _strip_comments(text)
        for wanted in _find_imports(text):
            await self._import(wanted, path, scope, depth=depth + 1)
        text = text.strip()
        if not text:
            return
        if self._chars >= MAX_TOTAL_CHARS:
            self._notes.append(f"{path} was skipped: the instructions are too long in total.")
            return
        if len(text) > MAX_CHARS:
            self._notes.append(f"{path} is long: {MAX_CHARS:,} of {len(text):,} characters shown.")
            text = f"{text[:MAX_CHARS]}\n... (cut; read {path} for the rest)"
        self._chars += len(text)
        self._texts.append(MemoryText(path, scope, text, importer, self._reader, self._globs))

    async def _import(self, wanted: str, importer: str, scope: str, *, depth: int) -> None:
        if wanted.startswith("~/"):
            path = normalize(self._places.home + wanted[1:])
        elif wanted.startswith("/"):
            path = normalize(wanted)
        else:
            path = normalize(f"{importer.rpartition('/')[0]}/{wanted}")
        info = await self._look(path)
        if info is None:
            return
        if depth > MAX_DEPTH:
            self._notes.append(
                f"{importer} imports {path}: nested more than {MAX_DEPTH} deep, skipped."
            )
            return
        may = scope in {"user", "managed"} or is_inside(info, self._places.project)
        if not may and not await self._allows_outside(importer, info):
            self._notes.append(
                f"{importer} imports {path}, which is outside the project: skipped, "
                "because it is not approved."
            )
            return
        text = await self._read(path)
        if text is not None:
            await self._add(path, scope, text, depth=depth, importer=importer)

    async def _take_rules(self, directory: str, scope: str, base: str) -> None:
        for path in await self._find_markdown(directory, depth=0):
            if self._is_excluded(path) or not await self._can_load(path, scope):
                continue
            text = await self._read(path)
            if text is None:
                continue
            try:
                head, body = split_frontmatter(text)
            except BadFrontmatter as error:
                self._notes.append(f"{path}: {error}; its frontmatter was ignored.")
                head, body = {}, text
            patterns = self._patterns(path, head.get("paths"))
            if patterns is None:
                await self._add(path, scope, body, depth=0)
            else:
                globs = tuple(parse_word_list(head.get("paths")))
                self._rules.append(_Rule(path, scope, base, patterns, body, globs))

    def _patterns(self, path: str, given: object) -> tuple[GlobPattern, ...] | None:
        """The files to which a rule applies; None: all."""
        listed = parse_word_list(given)
        found: list[GlobPattern] = []
        for text in listed:
            try:
                found.append(GlobPattern(text))
            except BadGlobPattern as error:
                self._notes.append(f"{path}: {error.sentence}")
        return tuple(found) if listed else None

    async def _find_markdown(self, directory: str, *, depth: int) -> list[str]:
        found: list[str] = []
        try:
            names = sorted(await self._files.names(directory))
        except ToolFault:
            return []
        for name in names:
            path = f"{directory}/{name}"
            if name.endswith(".md"):
                found.append(path)
            elif "." not in name and depth < MAX_DEPTH:
                found += await self._find_markdown(path, depth=depth + 1)
        return found

    async def _look(self, path: str) -> str | None:
        """The real path of a regular file."""
        try:
            info = await self._files.look(path)
        except ToolFault:
            return None
        return info.path if info is not None and info.kind == "file" else None

    async def _read(self, path: str) -> str | None:
        try:
            info = await self._files.look(path)
            if info is None or info.kind != "file":
                return None
            if info.path in self._loaded:
                return None
            self._loaded.add(info.path)
            if info.size_bytes > MAX_FILE_BYTES:
                self._notes.append(f"{path} was skipped: it has {info.size_bytes:,} bytes.")
                return None
            return await self._files.read(path)
        except ToolFault as fault:
            self._notes.append(f"{path} was skipped: {fault.sentence}")
            return None


def _is_for(rule: _Rule, path: str) -> bool:
    inside = path.removeprefix(f"{rule.base}/") if is_inside(path, rule.base) else None
    return any(
        pattern.matches(path) if pattern.is_absolute else bool(inside) and pattern.matches(inside)
        for pattern in rule.patterns
        if pattern.is_absolute or inside is not None
    )


def _parse_pattern(text: str) -> GlobPattern | None:
    try:
        return GlobPattern(text)
    except BadGlobPattern:
        return None


def _strip_frontmatter(text: str) -> str:
    try:
        return split_frontmatter(text)[1]
    except BadFrontmatter:
        return text


def _list_ancestors(directory: str) -> Sequence[str]:
    """All directories from the root down to this one."""
    parts = [part for part in directory.split("/") if part]
    return ["", *("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))]


def _strip_comments(text: str) -> str:
    """The text without HTML comments, except inside code."""
    kept: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        kept += (_COMMENT.sub("", text[at : code.start()]), code.group())
        at = code.end()
    return "".join((*kept, _COMMENT.sub("", text[at:])))


def _find_imports(text: str) -> list[str]:
    """The paths after `@` outside code, in order."""
    plain = _CODE.sub(" ", text)
    found = [match[1].rstrip(".:!?") for match in _IMPORT.finditer(plain)]
    return [path for path in dict.fromkeys(found) if _IN_TEXT.fullmatch(path)]
