"""Grep: text in files, as paths, lines or counts."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from handaxe.config.settings import SearchOptions, Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.display import Display, Items, Table, Text
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import PathSubject, Subject
from handaxe.contract.ports.files import FileInfo, Files, NameFinder
from handaxe.contract.ports.search import BadQuery, Search, SearchMode, TextQuery
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.workdir import Workdir
from handaxe.text.escape import find_closest_name, format_count
from handaxe.tools.search.grep_data import GrepData
from handaxe.tools.search.grep_output import SearchOutput
from handaxe.tools.search.search_paths import BadSearchPattern, find_search_root

_MODES: dict[str, SearchMode] = {
    "content": "content",
    "files_with_matches": "files",
    "count": "count",
}
Lines = Annotated[int, msgspec.Meta(ge=0)]


class GrepArgs(ToolArgs, kw_only=True):
    pattern: Annotated[str, "The regular expression to search for."]
    path: Annotated[
        str | None, "The file or directory to search; default: the working directory."
    ] = None
    glob: Annotated[str | None, "Filter by path."] = None
    file_type: Annotated[str | None, "Filter by file type."] = msgspec.field(
        default=None, name="type"
    )
    output_mode: Annotated[
        Literal["content", "files_with_matches", "count"],
        "What to show of the matches.",
    ] = "files_with_matches"
    after: Annotated[Lines | None, "Lines to show after each match."] = msgspec.field(
        default=None, name="-A"
    )
    before: Annotated[Lines | None, "Lines to show before each match."] = msgspec.field(
        default=None, name="-B"
    )
    around: Annotated[Lines | None, "Lines to show before and after each match."] = msgspec.field(
        default=None, name="-C"
    )
    context: Annotated[Lines | None, "The same as -C."] = None
    ignore_case: Annotated[bool, "Ignore case."] = msgspec.field(default=False, name="-i")
    line_numbers: Annotated[bool, "Show line numbers."] = msgspec.field(default=True, name="-n")
    only_matching: Annotated[bool, "Show only the matching part of a line."] = msgspec.field(
        default=False, name="-o"
    )
    multiline: Annotated[bool, "Let a match go across lines; `.` matches line breaks too."] = False
    head_limit: Annotated[int, msgspec.Meta(ge=0), "How many lines or entries; 0 = all."] = 250
    offset: Annotated[int, msgspec.Meta(ge=0), "How many lines or entries to skip first."] = 0
    ignored: Annotated[bool, "Search files that ignore files name as well."] = False


class Grep(Tool[GrepArgs]):
    """Text that fits a regular expression."""

    search_hint = "search file contents, regex, ripgrep, find text usages"
    output_type = GrepData
    effects = Effects.none()
    uses = (Search, Files, Workdir, Settings)
    may_use = (NameFinder,)
    default_limit = 250

    def effects_of(self, args: GrepArgs) -> Effects:
        return Effects.reading(_get_path(args))

    def subjects(self, args: GrepArgs) -> tuple[Subject, ...]:
        return (PathSubject(_get_path(args), "read", "path" if args.path is not None else None),)

    async def call(self, args: GrepArgs, ctx: ToolContext) -> ToolResult:
        options = ctx[Settings].search
        path = ctx[Workdir].resolve(_get_path(args))
        info = await find_search_root(path, ctx)
        query = _query(args, info, options)
        try:
            found = await ctx[Search].find_text(query)
        except BadQuery as bad:
            raise _make_pattern_fault(bad, args, ctx[Search]) from None
        answer = SearchOutput(
            found=found,
            mode=_MODES[args.output_mode],
            offset=args.offset,
            limit=args.head_limit,
            numbered=args.line_numbers,
            has_context=query.has_context,
            cwd=ctx[Workdir].current,
            timeout_s=options.timeout_s,
            glob=args.glob,
        )
        return answer.result()

    def title(self, partial_input: dict[str, Any]) -> str:
        where = f" in {partial_input['path']}" if partial_input.get("path") else ""
        return f"Grep({partial_input.get('pattern', '')}{where})"

    def show(self, args: GrepArgs, result: ToolResult) -> Display | None:
        if not result.ok:
            return None
        data = result.data
        notes = Text("\n".join(data["notes"]), "muted")
        if data["mode"] == "content":
            content: str = data["content"]
            if sum(row not in ("", "--") for row in content.split("\n")) > len(data["matches"]):
                # Lines after the first thousand are text only.
                return Text(content), notes
            return (*_group_by_file(data["matches"]), notes)
        if data["mode"] == "count":
            rows = tuple((file["file"], str(file["count"])) for file in data["counts"])
            return Table(("file", "matching lines"), rows), notes
        return Items(tuple(data["filenames"])), notes

    def summary(self, args: GrepArgs, result: ToolResult) -> str:
        if not result.ok:
            return super().summary(args, result)
        data = result.data
        if data["mode"] == "content":
            return f"Found {format_count(data['numLines'], 'line')}"
        return f"Found {format_count(data['totalFiles'], 'file')}"


def _get_path(args: GrepArgs) -> str:
    return args.path if args.path is not None else "."


def _query(args: GrepArgs, info: FileInfo, options: SearchOptions) -> TextQuery:
    around = args.around if args.around is not None else args.context or 0
    return TextQuery(
        pattern=args.pattern,
        root=info.path,
        is_file=info.kind == "file",
        mode=_MODES[args.output_mode],
        glob=args.glob or None,
        file_type=args.file_type or None,
        ignore_case=args.ignore_case,
        only_matching=args.only_matching,
        multiline=args.multiline,
        before=args.before if args.before is not None else around,
        after=args.after if args.after is not None else around,
        offset=args.offset,
        limit=args.head_limit or None,
        respect_ignore=options.respect_ignore and not args.ignored,
        timeout_s=options.timeout_s,
    )


def _make_pattern_fault(bad: BadQuery, args: GrepArgs, search: Search) -> BadSearchPattern:
    if bad.part == "glob":
        glob = args.glob or ""
        return BadSearchPattern("glob", glob, bad.diagnostic, suggest_glob(glob, bad.diagnostic))
    if bad.part == "type":
        kind = args.file_type or ""
        return BadSearchPattern(
            "type", kind, bad.diagnostic, suggest_type(kind, search.list_file_types())
        )
    advice = suggest_pattern(args.pattern, bad.diagnostic)
    return BadSearchPattern("pattern", args.pattern, bad.diagnostic, advice)


def _group_by_file(matches: list[dict[str, Any]]) -> Display:
    groups: dict[str, list[str]] = {}
    for line in matches:
        groups.setdefault(line["file"], []).append(f"{line['line']}: {line['text']}")
    return tuple(
        block for file, lines in groups.items() for block in (Text(file), Items(tuple(lines)))
    )


_LONE_BRACE = re.compile(r"(?<!\\)((?:\\\\)*)\{(?!\d+(?:,\d*)?\}|,\d+\})")
_LOOK_AROUND = re.compile(r"\(\?<?=((?:[^()\\]|\\.)*)\)")


def suggest_pattern(pattern: str, diagnostic: str) -> str | None:
    """A sentence with the corrected pattern, or None."""
    if "not allowed in a regex" in diagnostic:
        return "To match across lines, set multiline=true."
    if "backreferences are not supported" in diagnostic:
        return "Search for the part before the back-reference and filter the result."
    if "look-around" in diagnostic:
        return _strip_look_around(pattern)
    fixed = _escape_pattern(pattern, diagnostic)
    if fixed is None or fixed == pattern:
        return None
    return f"To search for the characters themselves: pattern: {fixed}"


def suggest_glob(glob: str, diagnostic: str) -> str | None:
    """A sentence with the corrected glob, or None."""
    if "[" in glob and ("character class" in diagnostic or "'['" in diagnostic):
        return f"To mean the character itself: glob: {_escape_each(glob, '[')}"
    if "{" in glob and ("alternate" in diagnostic or "'{'" in diagnostic):
        return f"To mean the character itself: glob: {_escape_each(glob, '{')}"
    return None


def suggest_type(name: str, types: Mapping[str, tuple[str, ...]]) -> str:
    """The type that was probably meant, or a glob instead."""
    plain = name.lower().removeprefix(".")
    by_ending = [known for known, globs in types.items() if f"*.{plain}" in globs]
    near = min(by_ending, key=len) if by_ending else find_closest_name(plain, types)
    if near is not None:
        return f"Did you mean type={near!r}?"
    return f"Use glob instead, for example glob='*.{plain}'."


def _strip_look_around(pattern: str) -> str:
    fixed = _LOOK_AROUND.sub(r"\1", pattern)
    if fixed == pattern or re.search(r"\(\?<?[=!]", fixed):
        return "Leave the look-around out and filter the result."
    return f"Without look-around: pattern: {fixed}"


def _escape_pattern(pattern: str, diagnostic: str) -> str | None:
    if "quantifier" in diagnostic or "counted repetition" in diagnostic:
        return _LONE_BRACE.sub(r"\1\\{", pattern)
    if "group" in diagnostic:
        return _escape_each(_escape_each(pattern, "("), ")")
    if "character class" in diagnostic:
        return _escape_each(pattern, "[")
    if "missing expression" in diagnostic:
        return re.sub(r"^([*+?]+)", lambda found: re.escape(found[1]), pattern)
    if "incomplete escape" in diagnostic:
        return pattern + "\\"
    return None


def _escape_each(text: str, char: str) -> str:
    """Every `char` that has no backslash gets one."""
    return re.sub(rf"(\\.)|{re.escape(char)}", lambda m: m[1] or "\\" + char, text, flags=re.DOTALL)
