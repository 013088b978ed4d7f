"""The directory or file a search starts from."""

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.faults.file import NotRegular
from handaxe.contract.ports.files import FileInfo, Files
from handaxe.text.escape__near_names import find_closest_name
from handaxe.text.paths__path_quoting import quote_path
from handaxe.tools.search.search_paths__faults import NothingThere


async def find_search_root(path: str, ctx: ToolContext) -> FileInfo:
    """What stands at the path, if it can be searched at all."""
    info = await ctx[Files].look(path)
    if info is None:
        raise NothingThere(path, await _find_near_names(path, ctx))
    if info.kind not in {"file", "directory"}:
        raise NotRegular(path, info.kind)
    return info


async def _find_near_names(path: str, ctx: ToolContext) -> list[str]:
    directory, _, name = path.rpartition("/")
    try:
        names = await ctx[Files].names(directory or "/")
    except ToolFault:
        return []
    near = find_closest_name(name, sorted(names))
    return [quote_path(f"{directory}/{near}")] if near else []
