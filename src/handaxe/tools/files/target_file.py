"""A missing file, with the names that may have been meant."""

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import BadPath, ToolFault
from handaxe.contract.faults.file import NotFound
from handaxe.contract.ports.files import Files
from handaxe.session.workdir import Workdir
from handaxe.text.escape import find_closest_name
from handaxe.text.paths import quote_path

_LOOKED_AT = 10


async def add_near_names(missing: NotFound, path: str, ctx: ToolContext) -> ToolFault:
    """The same fault, naming near matches in the same directory; none where none may be seen."""
    directory, _, name = path.rpartition("/")
    try:
        names = await ctx[Files].names(directory or "/")
    except ToolFault:
        return missing
    if name in names:
        return NotFound(path, is_link=True)
    stem = name.rpartition(".")[0] or name
    same_stem = [other for other in names if other.rpartition(".")[0] == stem]
    near = find_closest_name(name, names)
    found = dict.fromkeys([*([near] if near else []), *sorted(same_stem)])
    places = [f"{directory}/{other}" for other in list(found)[:_LOOKED_AT]]
    seen = [quote_path(place) for place in places if await _is_seen(place, ctx)]
    return NotFound(path, seen[:3])


async def _is_seen(path: str, ctx: ToolContext) -> bool:
    """Whether there is a file that this call may know of."""
    try:
        return await ctx[Files].look(path) is not None
    except ToolFault:
        return False


_ENDS_OF_DIRECTORIES = ("/", "/.", "/..")


async def resolve_file(spelled: str, ctx: ToolContext) -> str:
    """The absolute path of a file; a fault if only a directory can be meant, and none is there.

    The kernel refuses such a path too, and a file of that name is not what was asked for.
    """
    path = ctx[Workdir].resolve(spelled)
    if not spelled.endswith(_ENDS_OF_DIRECTORIES):
        return path
    info = await ctx[Files].look(path)
    if info is None or info.kind != "directory":
        raise BadPath(f"{spelled!r} ends like the path of a directory. Give the path of a file.")
    return path
