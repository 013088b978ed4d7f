"""The result of Grep: text for the model and data for the host."""

import re

import msgspec

from handaxe.contract.ports.search import FallbackMatches, MatchLine, SearchMode, TextFound
from handaxe.contract.result import ToolResult
from handaxe.text.escape import format_count
from handaxe.text.paths import quote_path
from handaxe.tools.search.grep_data import (
    ElsewhereData,
    GrepData,
    GrepDetails,
    GrepFiles,
    MatchData,
    OutputMode,
)
from handaxe.tools.search.search_paths import (
    describe_skipped,
    describe_timeout,
    escape_paths,
    format_notes,
    format_path,
    format_paths,
    to_skipped_data,
)

_MATCHING = re.compile(r"(?m)^\d+:")
_OTHER_KINDS = {"withheld": "files such as .env", "links": "links"}
_MODE_NAMES: dict[SearchMode, OutputMode] = {
    "content": "content",
    "files": "files_with_matches",
    "count": "count",
}


class SearchOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one query, and how to show it."""

    found: TextFound
    mode: SearchMode
    offset: int
    limit: int
    numbered: bool
    has_context: bool
    """Whether lines around the matches were asked for."""
    cwd: str
    timeout_s: float
    glob: str | None

    def result(self) -> ToolResult:
        """The result of the call."""
        found = self.found
        content = self._content() if self.mode != "files" else None
        body = content if content is not None else self._paths()
        notes = self._notes()
        text = "\n\n".join(filter(None, (body or self._nothing(), format_notes(notes))))
        details = self._numbers()
        if content is not None:
            details["content"] = content
        if found.has_more and self.limit:
            details["appliedLimit"] = self.limit
        if self.offset:
            details["appliedOffset"] = self.offset
        if not found.is_complete:
            details["unvisited"] = escape_paths(found.unvisited)
        data: GrepData = {
            "mode": _MODE_NAMES[self.mode],
            **self._files(),
            **details,
            "truncated": found.has_more or not found.is_complete,
            "isComplete": found.is_complete,
            "skipped": to_skipped_data(found.skipped),
            "elsewhere": [_to_elsewhere_data(look) for look in found.elsewhere],
            "engine": found.engine,
            "notes": notes,
        }
        return ToolResult(text, data=data)

    def _paths(self) -> str:
        return "\n".join(format_path(entry.path, self.cwd) for entry in self.found.entries)

    def _content(self) -> str:
        if self.mode == "count":
            return "\n".join(
                f"{format_path(entry.path, self.cwd)}:{entry.count}" for entry in self.found.entries
            )
        rows: list[str] = []
        path = name = ""
        for line in self.found.lines:
            if line.path != path:
                path, name = line.path, format_path(line.path, self.cwd)
            rows.append(_format_row(line, name, numbered=self.numbered))
        more_lines = self.found.more_lines
        names = format_paths([more.path for more in more_lines], self.cwd)
        rows += [
            f"{name}:" + more.text.removesuffix("\n").replace("\n", f"\n{name}:")
            if self.numbered and (not self.has_context or "-" not in more.text)
            else _format_rows(more.text, name, numbered=self.numbered)
            for more, name in zip(more_lines, names, strict=True)
        ]
        return "\n".join(rows)

    def _files(self) -> GrepFiles:
        found = self.found
        paths = [entry.path for entry in found.entries]
        if self.mode == "content":
            both = (*found.lines, *found.more_lines)
            paths = list(dict.fromkeys(item.path for item in both))
        return {"filenames": escape_paths(paths), "numFiles": len(paths)}

    def _numbers(self) -> GrepDetails:
        found = self.found
        numbers: GrepDetails = {}
        if self.mode == "content":
            shown_matches = sum(line.is_match and line.line > 0 for line in found.lines)
            more = found.shown_lines - len(found.lines)
            if self.has_context:
                more = sum(len(_MATCHING.findall(more.text)) for more in found.more_lines)
            numbers = {"numLines": found.shown_lines, "numMatches": shown_matches + more}
            numbers["matches"] = [_to_match_data(line) for line in found.lines if line.line]
        elif self.mode == "count":
            numbers = {"numMatches": found.total_matches}
            numbers["counts"] = [
                {"file": quote_path(entry.path), "count": entry.count} for entry in found.entries
            ]
        if found.total_files is not None:
            numbers["totalFiles"] = found.total_files
        if found.total_lines is not None:
            numbers["totalLines"] = found.total_lines
        return numbers

    def _nothing(self) -> str:
        if self.offset:
            return "No entries at this offset"
        so_far = "" if self.found.is_complete else " so far"
        return ("No files found" if self.mode == "files" else "No matches found") + so_far

    def _notes(self) -> list[str]:
        found = self.found
        notes: list[str] = []
        if self.mode == "count" and found.total_matches is not None and found.total_files:
            lines = format_count(found.total_matches, "matching line")
            extent = "in all" if found.is_complete else "so far"
            notes.append(f"{lines} in {format_count(found.total_files, 'file')} {extent}.")
        if found.has_more:
            notes.append(self._describe_next_page())
        if not found.is_complete:
            notes.append(describe_timeout(self.timeout_s, found.unvisited, self.cwd))
        cut = sum(line.is_cut for line in found.lines)
        if cut:
            notes.append(f"{format_count(cut, 'long line')} cut to what is around the match.")
        if found.capped_lines:
            lines = format_count(found.capped_lines, "very long line")
            notes.append(f"Only the first 1,000 matches of {lines} are shown.")
        is_empty = not found.entries and not found.shown_lines and not self.offset
        return (
            notes
            + (self._explain_no_matches() if is_empty else [])
            + self._left_out(is_empty=is_empty)
        )

    def _describe_next_page(self) -> str:
        found = self.found
        things = "lines" if self.mode == "content" else "files"
        number = found.shown_lines if self.mode == "content" else len(found.entries)
        total = found.total_files if self.mode != "content" else None
        so_far = "" if found.is_complete else " found so far"
        of_all = f" of {total:,}{so_far}" if total is not None else ""
        last = self.offset + number
        return f"Showing {things} {self.offset + 1}-{last}{of_all}. To continue: offset={last}"

    def _explain_no_matches(self) -> list[str]:
        looks = self.found.elsewhere
        notes = [self._second_look(look) for look in looks if look.files or not look.is_complete]
        if self.glob and "," in self.glob and "{" not in self.glob:
            notes.append(f"Several globs are written as one: glob='{{{self.glob}}}'")
        return notes

    def _second_look(self, look: FallbackMatches) -> str:
        if look.reason == "encoding":
            return self._describe_other_encodings(look)
        if not look.files:
            return f"0 matches; {look.reason} files are many and were not searched to the end."
        least = "" if look.is_complete else "at least "
        example = format_path(look.example, self.cwd)
        if look.reason == "binary":
            files = format_count(look.files, "binary file")
            return f"0 matches in text; {least}{files} with a match, e.g. {example}."
        matches, files = (
            format_count(look.matches, "match"),
            format_count(look.files, "ignored file"),
        )
        return (
            f"0 matches; {least}{matches} in {files}. To include them, pass ignored=true, or give "
            f"the file or its directory as path, e.g. path={example!r}."
        )

    def _describe_other_encodings(self, look: FallbackMatches) -> str:
        if not look.files:
            return "0 matches; files in other encodings than UTF-8 were not searched to the end."
        least = "" if look.is_complete else "at least "
        matches, files = format_count(look.matches, "match"), format_count(look.files, "file")
        return (
            f"0 matches in UTF-8; {least}{matches} in {files} of another encoding. To see them, "
            f"give the file as path, e.g. path={format_path(look.example, self.cwd)!r}."
        )

    def _left_out(self, *, is_empty: bool) -> list[str]:
        skipped = self.found.skipped
        looked_at = {look.reason for look in self.found.elsewhere} if is_empty else set[str]()
        least = "at least " if skipped.ignored_is_least else ""
        told = [
            ("ignored", least, "ignored entry", skipped.ignored),
            ("binary", "", "binary file", skipped.binary),
            ("withheld", "", "", skipped.withheld),
            ("links", "", "link", skipped.links),
        ]
        told = [kind for kind in told if kind[0] != "ignored" or "ignored" not in looked_at]
        counts = [
            before + format_count(count, thing)
            for _, before, thing, count in told
            if thing and count
        ]
        notes = [f"Not searched: {', '.join(counts)}."] if counts else []
        unknown = [kind for kind, *_, count in told if count is None and kind not in looked_at]
        return (
            notes + self._describe_uncounted(unknown) + describe_skipped(skipped, verb="searched")
        )

    def _describe_uncounted(self, kinds: list[str]) -> list[str]:
        """The kinds of files that were skipped but not counted, and how to count them."""
        if not kinds:
            return []
        files = " and ".join(kind for kind in kinds if kind not in _OTHER_KINDS)
        things = [f"{files} files"] if files else []
        what = ", ".join(things + [_OTHER_KINDS[kind] for kind in kinds if kind in _OTHER_KINDS])
        how = "; a path further down counts them" if "links" in kinds else ""
        return [f"Not searched and not counted: {what}{how}."]


def _format_row(line: MatchLine, name: str, *, numbered: bool) -> str:
    if not line.line:
        return "--"
    sign = ":" if line.is_match else "-"
    number = f"{line.line}{sign}" if numbered else ""
    return f"{name}{sign}{number}{line.text}"


def _format_rows(text: str, name: str, *, numbered: bool) -> str:
    """Many lines at once, each given as `12:text` or `12-text`."""
    rows: list[str] = []
    for row in text.removesuffix("\n").split("\n"):
        digits = len(row) - len(row.lstrip("0123456789"))
        if not digits:
            rows.append("--")
            continue
        rows.append(f"{name}{row[digits]}{row if numbered else row[digits + 1 :]}")
    return "\n".join(rows)


def _to_match_data(line: MatchLine) -> MatchData:
    return {
        "file": quote_path(line.path),
        "line": line.line,
        "column": line.column,
        "text": line.text,
        "ranges": [list(pair) for pair in line.ranges],
        "isMatch": line.is_match,
    }


def _to_elsewhere_data(look: FallbackMatches) -> ElsewhereData:
    return {
        "reason": look.reason,
        "matches": look.matches,
        "files": look.files,
        "example": quote_path(look.example),
        "isComplete": look.is_complete,
    }
