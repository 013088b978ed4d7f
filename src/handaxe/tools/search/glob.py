"""Glob: files by name, newest first."""

import time
from collections.abc import Sequence
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.config.settings import SearchOptions, Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Items, Text
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import Files, NameFinder
from handaxe.contract.ports.search import (
    VERSION_CONTROL,
    BadQuery,
    NameQuery,
    NamesFound,
    Search,
)
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.workdir import Workdir
from handaxe.text import gitignore
from handaxe.text.escape import format_count
from handaxe.text.globs import GlobPattern
from handaxe.text.paths import is_inside, quote_path
from handaxe.tools.search.search_paths import (
    BadSearchPattern,
    NotListable,
    SkippedData,
    describe_skipped,
    describe_timeout,
    escape_paths,
    find_search_root,
    format_notes,
    format_path,
    to_skipped_data,
)

_NO_VERSION_CONTROL = "Version control directories such as .git are not listed."


class GlobArgs(ToolArgs, kw_only=True):
    pattern: Annotated[str, "The pattern that paths must match, such as `**/*.py`."]
    path: Annotated[str | None, "The directory to search; default: the working directory."] = None
    limit: Annotated[int, msgspec.Meta(ge=0), "Files to list; 0 = all."] = 100
    offset: Annotated[int, msgspec.Meta(ge=0), "Files to skip first."] = 0
    ignored: Annotated[bool, "Find ignored files as well."] = False


class GlobData(TypedDict):
    """The result of Glob."""

    durationMs: float
    filenames: Annotated[list[str], "Absolute paths, the newest first."]
    numFiles: Annotated[int, "How many are named."]
    truncated: Annotated[bool, "Whether there are or may be more."]
    totalMatches: int
    countIsComplete: bool
    appliedLimit: NotRequired[Annotated[int, "The limit that cut the list off."]]
    appliedOffset: NotRequired[int]
    unvisited: NotRequired[Annotated[list[str], "Directories not searched because time ran out."]]
    ignoredMatches: Annotated[int, "How many are left out because of ignore files."]
    ignoredExample: str | None
    skipped: SkippedData


class Glob(Tool[GlobArgs]):
    """Paths that fit a pattern."""

    search_hint = "find files by name or extension, list directory, fd, ls"
    output_type = GlobData
    effects = Effects.none()
    uses = (Search, Files, Workdir, Settings)
    may_use = (NameFinder,)

    def effects_of(self, args: GlobArgs) -> Effects:
        return Effects.reading(*_list_places(args))

    def subjects(self, args: GlobArgs) -> tuple[Subject, ...]:
        given, *literal = _list_places(args)
        field = "path" if args.path is not None else None
        return (
            PathSubject(given, "read", field),
            *(PathSubject(path, "read") for path in literal),
        )

    async def validate(self, args: GlobArgs, ctx: ToolContext) -> None:
        try:
            pattern = GlobPattern(args.pattern)
        except gitignore.BadGlobPattern as bad:
            raise BadSearchPattern("pattern", args.pattern, bad.sentence, None) from None
        if pattern.only_dirs:
            better = args.pattern.rstrip("/") + "/**"
            problem = "it ends in '/' and so names directories, not files."
            raise BadSearchPattern("pattern", args.pattern, problem, f"Try pattern={better!r}")

    async def call(self, args: GlobArgs, ctx: ToolContext) -> ToolResult:
        began = time.monotonic()
        args = _from_home(args, ctx[Workdir].home)
        options, root = ctx[Settings].search, ctx[Workdir].resolve(_list_places(args)[0])
        info = await find_search_root(root, ctx)
        if info.kind != "directory":
            raise NotListable(path=root)
        query = NameQuery(
            pattern=_resolve_pattern(args, info.path),
            root=info.path,
            limit=args.offset + args.limit if args.limit else None,
            respect_ignore=_is_respecting_ignore(options) and not args.ignored,
            hidden=options.glob_hidden,
            timeout_s=options.timeout_s,
        )
        try:
            found = NamesFound(paths=[], total=0)
            is_kept_back = _is_version_control(info.path, query.pattern, ctx[Workdir].roots)
            if not is_kept_back:
                found = await ctx[Search].find_names(query)
        except BadQuery as bad:
            raise BadSearchPattern("pattern", args.pattern, bad.diagnostic, None) from None
        took_s = time.monotonic() - began
        notes = [_NO_VERSION_CONTROL] if is_kept_back else []
        return _build_result(found, args, ctx[Workdir].current, options.timeout_s, took_s, notes)

    def title(self, partial_input: dict[str, Any]) -> str:
        where = f" in {partial_input['path']}" if partial_input.get("path") else ""
        return f"Glob({partial_input.get('pattern', '')}{where})"

    def show(self, args: GlobArgs, result: ToolResult) -> Display | None:
        if not result.ok:
            return None
        _, _, notes = result.text.partition("\n\n")
        items = Items(tuple(result.data["filenames"]))
        return (items, Text(notes, "muted")) if notes else (items,)

    def summary(self, args: GlobArgs, result: ToolResult) -> str:
        if not result.ok:
            return super().summary(args, result)
        return f"Found {format_count(result.data['totalMatches'], 'file')}"


def _is_respecting_ignore(options: SearchOptions) -> bool:
    shown = options.glob_ignored
    return options.respect_ignore if shown is None else not shown


def _list_places(args: GlobArgs) -> tuple[str, ...]:
    """The directories that the call reads: `path`, and where an absolute pattern begins."""
    given = args.path if args.path is not None else "."
    if not args.pattern.startswith(("/", "~/")):
        return (given,)
    try:
        literal = GlobPattern(args.pattern).literal_directory
    except gitignore.BadGlobPattern:
        return (given,)
    return (literal,) if args.path is None else (given, literal)


def _from_home(args: GlobArgs, home: str) -> GlobArgs:
    """The same call with an absolute pattern, if it begins at home."""
    if not args.pattern.startswith("~/"):
        return args
    return msgspec.structs.replace(args, pattern=gitignore.escape(home) + args.pattern[1:])


def _resolve_pattern(args: GlobArgs, real: str) -> str:
    """The pattern, with links at the beginning of an absolute one resolved."""
    spelled = _list_places(args)[0].rstrip("/")
    if args.path is None and spelled != real and args.pattern.startswith(f"{spelled}/"):
        return gitignore.escape(real) + args.pattern[len(spelled) :]
    return args.pattern


def _is_version_control(path: str, pattern: str, roots: Sequence[str]) -> bool:
    """Whether a pattern leads into a directory that a version control program keeps.

    A working directory inside such a directory is not one.
    """
    literal = GlobPattern(pattern).literal_directory
    start = literal if literal.startswith("/") else f"{path}/{literal}"
    inside = [start[len(root) :] for root in roots if is_inside(start, root)]
    names = min(inside, key=len, default=start).lower().split("/")
    return not set(VERSION_CONTROL).isdisjoint(names)


def _build_result(
    found: NamesFound, args: GlobArgs, cwd: str, timeout_s: float, took_s: float, notes: list[str]
) -> ToolResult:
    page = found.paths[args.offset :]
    last = args.offset + len(page)
    is_cut = last < found.total
    so_far = "" if found.is_complete else " found so far"
    notes = list(notes)
    if is_cut:
        shown = f"Showing files {args.offset + 1:,}-{last:,} of {found.total:,}{so_far}"
        notes.append(f"{shown}, the newest first. To continue: offset={last}")
    elif not page and found.total:
        there_are = f"{format_count(found.total, 'file')} fit{so_far and ' so far'}"
        notes.append(f"Only {there_are}: offset={args.offset} is after the last one.")
    if not found.is_complete:
        notes.append(describe_timeout(timeout_s, found.unvisited, cwd))
    notes += _describe_left_out(found)
    nothing = "No entries at this offset" if args.offset else "No files found"
    text = "\n".join(format_path(path, cwd) for path in page) or nothing
    if notes:
        text += "\n\n" + format_notes(notes)
    data: GlobData = {
        "durationMs": round(took_s * 1000, 1),
        "filenames": [quote_path(path) for path in page],
        "numFiles": len(page),
        "truncated": is_cut or not found.is_complete,
        "totalMatches": found.total,
        "countIsComplete": found.is_complete,
        "ignoredMatches": found.ignored_matches,
        "ignoredExample": quote_path(example) if (example := found.ignored_example) else None,
        "skipped": to_skipped_data(found.skipped),
    }
    if is_cut:
        data["appliedLimit"] = args.limit
    if args.offset:
        data["appliedOffset"] = args.offset
    if not found.is_complete:
        data["unvisited"] = escape_paths(found.unvisited)
    return ToolResult(text, data=data)


def _describe_left_out(found: NamesFound) -> list[str]:
    notes: list[str] = []
    if found.ignored_matches:
        least = "" if found.is_ignored_count_complete else "at least "
        files = format_count(found.ignored_matches, "matching file")
        notes.append(
            f"{least}{files} not shown because of ignore files (such as .gitignore). To see them, "
            "pass ignored=true, name the file in full, or give an ignored directory as path."
        )
    if found.skipped.links:
        links = format_count(found.skipped.links, "link")
        notes.append(f"{links} to other places not followed.")
    if found.skipped.links_is_least and found.skipped.ignored is None:
        notes.append("Links were not listed: too many files are ignored. Try a path further down.")
    return notes + describe_skipped(found.skipped, verb="listed")
