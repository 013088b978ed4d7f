"""A missing file, with the names that may have been meant."""

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.file_faults import NotFound
from handaxe.contract.ports.files import Files
from handaxe.text.near_names import nearest


async def with_near_names(missing: NotFound, path: str, ctx: ToolContext) -> ToolFault:
    """The same fault, naming near matches in the same directory; none where none may be seen."""
    directory, _, name = path.rpartition("/")
    try:
        names = await ctx[Files].names(directory or "/")
    except ToolFault:
        return missing
    stem = name.rpartition(".")[0] or name
    same_stem = [other for other in names if other.rpartition(".")[0] == stem]
    near = nearest(name, names)
    found = dict.fromkeys([*([near] if near else []), *sorted(same_stem)])
    return NotFound(path, [f"{directory}/{other}" for other in list(found)[:3]])
