"""Files of instructions that an agent always has in sight: CLAUDE.md, AGENTS.md and their like.

From the user's own down to the working directory, each with what it imports. What is left out,
and why, is said; nothing is loaded twice.
"""

import re
from collections.abc import Callable, Sequence

import msgspec

from handaxe.agent.prompt import MemoryText
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.files import Files
from handaxe.session.workdir import is_inside, normalize
from handaxe.text.frontmatter import BadFrontmatter, split, words

MAX_DEPTH = 4
MAX_FILE_BYTES = 4 << 20
MAX_CHARS = 40_000
"""So much of one file is shown; the rest can be read."""
MAX_TOTAL_CHARS = 200_000

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_CODE = re.compile(r"(^|\n)(```|~~~).*?(?:\n\2|\Z)|`[^`\n]*`", re.DOTALL)
_IMPORT = re.compile(r"(?<![\w@`])@((?:~/|\.{0,2}/)?[^\s@`'\"<>()\[\]{},;]+)")
_IN_TEXT = re.compile(r"[\w./~-]+")
NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md", "CLAUDE.local.md")


class MemoryPlaces(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look."""

    directory: str
    """Where the agent works; files are looked for from `/` down to here."""
    project: str
    """Imports may reach below here without a yes."""
    home: str
    managed: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    """The user's own directories: `~/.claude`, `~/.handaxe`."""
    excludes: tuple[str, ...] = ()


class Memory(msgspec.Struct, frozen=True):
    """What was found, and what was left out."""

    texts: tuple[MemoryText, ...]
    notes: tuple[str, ...]


async def load_memory(
    files: Files, places: MemoryPlaces, *, allows_outside: Callable[[str], bool] = lambda _: False
) -> Memory:
    """All files that count for this directory, the most general first."""
    return await _Loader(files, places, allows_outside).load()


class _Loader:
    def __init__(
        self, files: Files, places: MemoryPlaces, allows_outside: Callable[[str], bool]
    ) -> None:
        self._files = files
        self._places = places
        self._allows_outside = allows_outside
        self._loaded: set[str] = set()
        self._texts: list[MemoryText] = []
        self._notes: list[str] = []
        self._chars = 0

    async def load(self) -> Memory:
        for directory in self._places.managed:
            await self._take(f"{directory}/CLAUDE.md", "managed")
        for directory in self._places.users:
            for name in ("CLAUDE.md", "AGENTS.md"):
                await self._take(f"{directory}/{name}", "user")
            await self._rules(f"{directory}/rules", "user")
        for directory in _chain(self._places.directory):
            for name in NAMES:
                scope = "local" if name == "CLAUDE.local.md" else "project"
                await self._take(f"{directory}/{name}", scope)
            await self._rules(f"{directory}/.claude/rules", "project")
        return Memory(tuple(self._texts), tuple(self._notes))

    async def _take(self, path: str, scope: str) -> None:
        path = normalize(path)
        if any(path == place or is_inside(path, place) for place in self._places.excludes):
            return
        text = await self._read(path)
        if text is not None:
            await self._add(path, scope, text, depth=0)

    async def _add(
        self, path: str, scope: str, text: str, *, depth: int, importer: str = ""
    ) -> None:
        """What a file imports stands before it, so that the file itself has the last word."""
        text = _without_comments(text)
        for wanted in _imports(text):
            await self._import(wanted, path, scope, depth=depth + 1)
        text = text.strip()
        if not text:
            return
        if self._chars >= MAX_TOTAL_CHARS:
            self._notes.append(f"{path} was left out: the instructions are too long together.")
            return
        if len(text) > MAX_CHARS:
            self._notes.append(f"{path} is long: {MAX_CHARS:,} of {len(text):,} characters shown.")
            text = f"{text[:MAX_CHARS]}\n... (cut; read {path} for the rest)"
        self._chars += len(text)
        self._texts.append(MemoryText(path, scope, text, importer))

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
            self._notes.append(f"{importer} imports {path}: more than {MAX_DEPTH} deep, left out.")
            return
        may = scope in {"user", "managed"} or is_inside(info, self._places.project)
        if not may and not self._allows_outside(path):
            self._notes.append(
                f"{importer} imports {path}, which lies outside the project: left out."
            )
            return
        text = await self._read(path)
        if text is not None:
            await self._add(path, scope, text, depth=depth, importer=importer)

    async def _rules(self, directory: str, scope: str) -> None:
        for path in await self._markdown_below(directory, depth=0):
            text = await self._read(path)
            if text is None:
                continue
            try:
                head, body = split(text)
            except BadFrontmatter as error:
                self._notes.append(f"{path}: {error}; its head was ignored.")
                head, body = {}, text
            scopes = words(head.get("paths"))
            if scopes:
                listed = ", ".join(f"`{scope}`" for scope in scopes)
                body = f"Before you work on files that match {listed}, read {path}."
            await self._add(path, scope, body, depth=0)

    async def _markdown_below(self, directory: str, *, depth: int) -> list[str]:
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
                found += await self._markdown_below(path, depth=depth + 1)
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
                self._notes.append(f"{path} was left out: it has {info.size_bytes:,} bytes.")
                return None
            return await self._files.read(path)
        except ToolFault as fault:
            self._notes.append(f"{path} was left out: {fault.sentence}")
            return None


def _chain(directory: str) -> Sequence[str]:
    """All directories from the root down to this one."""
    parts = [part for part in directory.split("/") if part]
    return ["", *("/" + "/".join(parts[: count + 1]) for count in range(len(parts)))]


def _without_comments(text: str) -> str:
    """The text without HTML comments, except inside code."""
    kept: list[str] = []
    at = 0
    for code in _CODE.finditer(text):
        kept += (_COMMENT.sub("", text[at : code.start()]), code.group())
        at = code.end()
    return "".join((*kept, _COMMENT.sub("", text[at:])))


def _imports(text: str) -> list[str]:
    """The paths after `@` outside code, in order."""
    plain = _CODE.sub(" ", text)
    found = [match[1].rstrip(".:!?") for match in _IMPORT.finditer(plain)]
    return [path for path in dict.fromkeys(found) if _IN_TEXT.fullmatch(path)]
