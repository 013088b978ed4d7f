"""How a path that was found is written down.

In text it is relative to the working directory where it lies inside, absolute elsewhere; data
holds absolute paths. Both can be given to every tool as they stand: what no text can show is
quoted, and what would mean something else at the beginning of a path comes after `./`.
"""

from collections.abc import Iterable
from typing import Annotated, Literal, TypedDict

from handaxe.contract.context import ToolContext
from handaxe.contract.faults import TemplateFault, ToolFault
from handaxe.contract.faults.file import NotRegular
from handaxe.contract.ports.files import FileInfo, Files
from handaxe.contract.ports.search import SkippedFiles
from handaxe.search.near_paths import NearPaths, find_near_paths
from handaxe.text.escape import format_count
from handaxe.text.paths import quote_path

SkipReason = Literal["ignored", "binary", "tooLarge", "unreadable", "links", "withheld"]


class SkippedData(TypedDict, total=False):
    """How many files were skipped, by reason; a reason that was not counted is missing."""

    ignored: int
    binary: int
    tooLarge: int
    unreadable: int
    links: int
    withheld: Annotated[int, "Files that may hold secrets, such as `.env`."]
    notCounted: list[SkipReason]
    atLeast: Annotated[list[SkipReason], "Reasons of which there may be more than counted."]
    denied: Annotated[bool, "Whether rules hide files."]


def format_path(path: str, directory: str) -> str:
    """A path as text shows it in a working directory."""
    prefix = directory if directory.endswith("/") else directory + "/"
    return quote_path(_make_relative(path, prefix))


def format_paths(paths: Iterable[str], directory: str) -> list[str]:
    """Quote many paths where needed, fast if none needs quotes."""
    prefix = directory if directory.endswith("/") else directory + "/"
    return escape_paths(_make_relative(path, prefix) for path in paths)


def escape_paths(paths: Iterable[str]) -> list[str]:
    """Many paths in a form that tools accept."""
    found = list(paths)
    joined = "".join(found)
    if joined.isprintable() and "$'" not in joined:
        return found
    return [quote_path(path) for path in found]


def _make_relative(path: str, prefix: str) -> str:
    if not path.startswith(prefix):
        return path
    name = path[len(prefix) :]
    return f"./{name}" if name[:1] == "~" or name[:5].lower() == "file:" else name


class BadSearchPattern(ToolFault):
    """The pattern, glob or type cannot be read."""

    code = "search.bad_pattern"

    def __init__(self, part: str, value: str, diagnostic: str, advice: str | None) -> None:
        shown = value if len(value) <= 200 else value[:200] + "..."
        hint = f"\n{advice}" if advice else ""
        super().__init__(
            f"The {part} {shown!r} cannot be used: {diagnostic.strip()}{hint}",
            data={"part": part, "diagnostic": diagnostic, "advice": advice or ""},
        )


class NotListable(
    TemplateFault,
    code="search.not_found",
    sentence="{path} is a file, and Glob lists directories. Read the file, or name a directory.",
):
    """Glob needs a directory."""


class NothingThere(ToolFault):
    """There is no file or directory to search."""

    code = "search.not_found"

    def __init__(self, path: str, found: NearPaths) -> None:
        hint = f" Did you mean {' or '.join(found.near)}?" if found.near else ""
        if found.elsewhere:
            hint += f" What has that name: {', '.join(found.elsewhere)}."
        super().__init__(
            f"There is nothing at {path}, so nothing was searched.{hint}",
            data={"path": path, "near": list(found.near), "elsewhere": list(found.elsewhere)},
        )


MAX_NAMED = 5


def describe_skipped(skipped: SkippedFiles, *, verb: str) -> list[str]:
    """One sentence for each reason that left out files."""
    notes: list[str] = []
    if skipped.too_large:
        notes.append(
            f"{format_count(skipped.too_large, 'file')} of more than 256 MiB not {verb}; name such "
            "a file as path to search it."
        )
    if skipped.unreadable:
        notes.append(f"{format_count(skipped.unreadable, 'file or directory')} could not be read.")
    if skipped.withheld:
        least = "at least " if skipped.withheld_is_least else ""
        notes.append(
            f"Not {verb}: {least}{format_count(skipped.withheld, 'file')} such as .env. Such files "
            "may hold secrets, and Read asks for them."
        )
    if skipped.denied:
        notes.append("Files that a Read rule denies are left out.")
    return notes


def to_skipped_data(skipped: SkippedFiles) -> SkippedData:
    """The skipped entries as data, with the counted reasons."""
    counts: dict[SkipReason, int | None] = {
        "ignored": skipped.ignored,
        "binary": skipped.binary,
        "tooLarge": skipped.too_large,
        "unreadable": skipped.unreadable,
        "links": skipped.links,
        "withheld": skipped.withheld,
    }
    known: SkippedData = {}
    for name, count in counts.items():
        if count is not None:
            known[name] = count
    unknown: list[SkipReason] = [name for name, count in counts.items() if count is None]
    if unknown:
        known["notCounted"] = unknown
    least: dict[SkipReason, int | bool | None] = {
        "ignored": skipped.ignored_is_least and skipped.ignored,
        "links": skipped.links_is_least and skipped.links,
        "withheld": skipped.withheld_is_least and skipped.withheld,
    }
    if any(least.values()):
        known["atLeast"] = [name for name, is_least in least.items() if is_least]
    known["denied"] = skipped.denied
    return known


def describe_timeout(timeout_s: float, unvisited: list[str], cwd: str) -> str:
    """A sentence that time ran out, and where to continue."""
    stopped = f"Stopped after {timeout_s:g} s; this is what was found until then."
    if not unvisited:
        return f"{stopped} Narrow the search with path, glob or type."
    named = ", ".join(format_path(path, cwd) for path in unvisited[:MAX_NAMED])
    more = f" and {len(unvisited) - MAX_NAMED:,} more" if len(unvisited) > MAX_NAMED else ""
    return f"{stopped} To continue, search these with path: {named}{more}."


def format_notes(notes: list[str]) -> str:
    """Notes about an answer, in brackets."""
    return "\n".join(f"[{note}]" for note in notes)


async def find_search_root(path: str, ctx: ToolContext) -> FileInfo:
    """The file or directory to search; raises a fault for others."""
    info = await ctx[Files].look(path)
    if info is None:
        raise NothingThere(path, await find_near_paths(path, ctx, may_be_directory=True))
    if info.kind not in {"file", "directory"}:
        raise NotRegular(path=path, kind=info.kind)
    return info
