"""The file that a call names. Not here: whether it may be looked at, and what is in it."""

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import BadPath
from handaxe.contract.ports.files import Files
from handaxe.session.workdir import Workdir

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
