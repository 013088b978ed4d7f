"""The data of a Grep result; its fields depend on the mode."""

from typing import Annotated, Literal, TypedDict

from handaxe.tools.search.search_paths import SkippedData

OutputMode = Literal["content", "files_with_matches", "count"]


class MatchData(TypedDict):
    """One line."""

    file: str
    line: int
    column: Annotated[int | None, "Where the first match begins, in characters from 1."]
    text: str
    ranges: Annotated[list[list[int]], "The matches in `text`: from, to (exclusive), from 0."]
    isMatch: Annotated[bool, "False for a line around a match."]


class CountData(TypedDict):
    """One file."""

    file: str
    count: Annotated[int, "Its matching lines."]


class ElsewhereData(TypedDict):
    """Matches in files that a search skips."""

    reason: Literal["ignored", "binary", "encoding"]
    matches: int
    files: int
    example: str
    isComplete: bool


class GrepFiles(TypedDict):
    """The files of a page."""

    filenames: Annotated[list[str], "Absolute paths."]
    numFiles: int


class GrepDetails(TypedDict, total=False):
    """Fields of some modes and some searches."""

    content: Annotated[str, "Modes `content` and `count`: what the text shows."]
    numLines: Annotated[int, "Mode `content`: how many lines are shown."]
    numMatches: Annotated[int | None, "Mode `content`: matching lines shown; `count`: of all."]
    matches: Annotated[list[MatchData], "Mode `content`; the last of very many are left out."]
    counts: Annotated[list[CountData], "Mode `count`."]
    totalFiles: Annotated[int, "For the whole search, if it was counted."]
    totalLines: Annotated[int, "For the whole search, if it was counted."]
    appliedLimit: Annotated[int, "The limit that cut the list off."]
    appliedOffset: int
    unvisited: Annotated[list[str], "Directories not searched because time ran out."]


class GrepData(GrepFiles, GrepDetails):
    """The result of Grep."""

    mode: OutputMode
    truncated: Annotated[bool, "Whether there is or may be more."]
    isComplete: Annotated[bool, "False if time ran out."]
    skipped: SkippedData
    elsewhere: list[ElsewhereData]
    engine: str
    notes: list[str]
