"""Paths that a missing path may have meant.

Only working directories are searched, and the directory of the path itself. Paths that a Read rule
denies or that ignore files name are left out.
"""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from handaxe.config.settings import SearchOptions
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.files import FileKind, Files, NameFinder
from handaxe.contract.ports.search import VERSION_CONTROL, BadQuery, NameQuery, Search
from handaxe.session.workdir import Workdir
from handaxe.text import gitignore
from handaxe.text.escape import find_closest_name
from handaxe.text.paths import is_inside, quote_path

_MAX_NEAR = 3
_MAX_LOOKED_AT = 10
_MAX_PARTS = 30
_MAX_ROOTS = 4
_MAX_FOUND = 100
_SEARCH_TIMEOUT_S = 1.0


class NearPaths(msgspec.Struct, frozen=True):
    """Paths that the caller may have meant, in a form that tools accept."""

    near: tuple[str, ...] = ()
    """Paths with a similar spelling."""
    elsewhere: tuple[str, ...] = ()
    """Paths with the same name in other directories."""
    is_link: bool = False
    """Whether the path is a link that leads nowhere."""


async def find_near_paths(
    path: str, ctx: ToolContext, *, may_be_directory: bool = False
) -> NearPaths:
    """Paths near a missing one; the tool needs `Files` and `Workdir`, and may use `NameFinder`."""
    directory, _, name = path.rpartition("/")
    names = await _list_names(directory or "/", ctx)
    if name in names:
        return NearPaths(is_link=True)
    kinds: tuple[FileKind, ...] = ("file", "directory") if may_be_directory else ("file",)
    stem = name.rpartition(".")[0] or name
    close = find_closest_name(name, sorted(names))
    same_stem = sorted(other for other in names if other.rpartition(".")[0] == stem)
    wanted = [f"{directory}/{other}" for other in [*([close] if close else []), *same_stem]]
    root = next((one for one in ctx[Workdir].roots if is_inside(path, one)), None)
    if root is not None and (respelled := await _respell(path, root, ctx)):
        wanted.append(respelled)
    near = await _select_visible(wanted, _MAX_NEAR, kinds, ctx)
    known = {path, *near}
    found = [one for one in await _find_elsewhere(path, ctx, kinds) if one not in known]
    elsewhere = await _select_visible(found, _MAX_NEAR, kinds, ctx)
    return NearPaths(tuple(map(quote_path, near)), tuple(map(quote_path, elsewhere)))


async def _list_names(directory: str, ctx: ToolContext) -> list[str]:
    try:
        return await ctx[Files].names(directory)
    except ToolFault:
        return []


async def _select_visible(
    paths: list[str], limit: int, kinds: tuple[FileKind, ...], ctx: ToolContext
) -> list[str]:
    """The first of some paths that exist and that the call may see."""
    visible: list[str] = []
    for path in list(dict.fromkeys(paths))[:_MAX_LOOKED_AT]:
        try:
            info = await ctx[Files].look(path)
        except ToolFault:
            continue
        if info is not None and info.kind in kinds:
            visible.append(path)
        if len(visible) == limit:
            break
    return visible


async def _respell(path: str, root: str, ctx: ToolContext) -> str | None:
    """The path with each missing part replaced by the existing name most like it."""
    parts = path[len(root.rstrip("/")) + 1 :].split("/")
    if len(parts) > _MAX_PARTS:
        return None
    current = root.rstrip("/")
    for part in parts:
        names = await _list_names(current or "/", ctx)
        if part in names:
            current = f"{current}/{part}"
            continue
        close = find_closest_name(
            part, sorted(other for other in names if other not in VERSION_CONTROL)
        )
        if close is None:
            return None
        current = f"{current}/{close}"
    return current


async def _find_elsewhere(path: str, ctx: ToolContext, kinds: tuple[FileKind, ...]) -> list[str]:
    """Paths with the same name in the working directories, the most similar first."""
    finder = ctx.find(NameFinder)
    name = path.rpartition("/")[2]
    if finder is None or not name:
        return []
    found = await finder.find_named(name, may_be_directory="directory" in kinds)
    return sorted(dict.fromkeys(found), key=lambda one: (-_count_common(one, path), len(one), one))


class SearchedNames(NameFinder):
    """Finds names in the working directories, with a short timeout."""

    def __init__(
        self, search: Search, workdir: Workdir, options: Callable[[], SearchOptions]
    ) -> None:
        self._search, self._workdir, self._options = search, workdir, options

    async def find_named(self, name: str, *, may_be_directory: bool = False) -> list[str]:
        """Paths that end with the name; directories only if no file has it."""
        pattern = f"**/{gitignore.escape(name)}"
        found = await self._find(pattern)
        if may_be_directory and not found:
            marked = f"/{name}/"
            below = [one for one in await self._find(f"{pattern}/**") if marked in one]
            found = [one[: one.rindex(marked)] + f"/{name}" for one in below]
        return list(dict.fromkeys(found))

    async def _find(self, pattern: str) -> list[str]:
        found: list[str] = []
        for root in self._workdir.roots[:_MAX_ROOTS]:
            query = NameQuery(
                pattern=pattern,
                root=root,
                limit=_MAX_FOUND,
                respect_ignore=self._options().respect_ignore,
                timeout_s=_SEARCH_TIMEOUT_S,
            )
            with suppress(BadQuery, ToolFault):
                found += (await self._search.find_names(query)).paths
        return found


def _count_common(one: str, other: str) -> int:
    """How many names of directories two paths share."""
    return len(set(one.split("/")) & set(other.split("/")))
