"""Faults of the tools that change files."""

from typing import Any

from handaxe.contract.faults import TemplateFault, ToolFault
from handaxe.contract.faults.file import FileTooLarge


class NotRead(
    TemplateFault,
    code="file.not_read",
    sentence=(
        "File has not been read yet. Read it first before writing to it. Call Read with "
        "file_path={path!r}."
    ),
):
    """This session has not read the file that Edit or Write would change."""


class NotOpened(ToolFault):
    """The file is under Perforce and not open for editing."""

    code = "file.not_opened"

    def __init__(self, path: str) -> None:
        import shlex

        super().__init__(
            f"File is read-only because Perforce has not opened {path} for editing. Run "
            f"`p4 edit {shlex.quote(path)}` first, then try again."
        )


class NotReadWhole(ToolFault):
    """Write would replace a file that was read only in part."""

    code = "file.not_read"

    def __init__(self, path: str, seen: tuple[tuple[int, int], ...], total: int | None) -> None:
        ranges = ", ".join(f"{first}-{last}" for first, last in seen)
        of_all = f" of {total}" if total else ""
        super().__init__(
            "File has not been read yet. Read it first before writing to it: only lines "
            f"{ranges}{of_all} were read, and Write replaces the whole file. Read the "
            f"rest of {path}, or change only a part of it."
        )


class ChangedSinceRead(ToolFault):
    """The file changed after it was read."""

    code = "file.changed"

    def __init__(self, path: str, changes: str | None) -> None:
        shown = f"\nWhat changed since the read:\n{changes}" if changes else ""
        super().__init__(
            "File has been modified since read, either by the user or by a linter. Read it "
            f"again before attempting to write it. ({path}){shown}",
            data={"diff": changes or ""},
        )


class NoMatch(ToolFault):
    """The text to replace is not in the file."""

    code = "edit.no_match"

    def __init__(self, old: str, help_text: str, data: dict[str, Any] | None = None) -> None:
        super().__init__(
            f"String to replace not found in file.\nString: {_shorten_text(old)}"
            + (f"\n\n{help_text}" if help_text else ""),
            data=data,
        )


class ManyMatches(ToolFault):
    """The text to replace occurs more than once."""

    code = "edit.many_matches"

    def __init__(self, old: str, count: int, lines: list[int], matched_with: str) -> None:
        where = ", ".join(map(str, lines[:20]))
        how = "" if matched_with == "exact" else f" (matched by {matched_with.replace('_', ' ')})"
        super().__init__(
            f"Found {count} matches of the string to replace, but replace_all is false. To "
            "replace all occurrences, set replace_all to true. To replace only one occurrence, "
            "please provide more context to uniquely identify the instance.\n"
            f"String: {_shorten_text(old)}\nThe matches start on lines {where}{how}.",
            data={"lines": lines, "count": count, "matched_with": matched_with},
        )


class NoChange(
    TemplateFault,
    code="edit.no_change",
    sentence="No changes to make: old_string and new_string are exactly the same.",
):
    """Old and new text are the same."""


class LinesUnchanged(
    TemplateFault,
    code="edit.no_change",
    sentence="No changes to make: the lines already equal `text`, or `changes` is empty.",
):
    """The change would leave every line as it is."""


class WrongLines(ToolFault):
    """A line does not exist or does not match its tag."""

    code = "edit.no_match"

    def __init__(self, told: list[str], wrong: list[dict[str, Any]]) -> None:
        super().__init__(
            "Nothing was changed: a line does not match its tag.\n"
            + "\n".join(told)
            + "\nSend the changes again with the current numbers and tags.",
            data={"wrong": wrong},
        )


class LinesMoved(ToolFault):
    """A line number and tag can mean two equal lines, because lines moved since they were shown."""

    code = "edit.many_matches"

    def __init__(self, change: int, given: str, moved_to: list[int]) -> None:
        where = " or ".join(map(str, moved_to))
        was = f"is now line {where}" if moved_to else "no longer exists"
        super().__init__(
            f"Nothing was changed: lines moved since they were shown. {given} of change "
            f"{change + 1} matches that line, but the line that had this number and tag "
            f"before {was}. Read the lines again, then send the changes with the new "
            "numbers.",
            data={"change": change, "given": given, "lines": moved_to},
        )


class LinesNotShown(
    TemplateFault,
    code="file.not_read",
    sentence=(
        "The file was rewritten since line {given} was shown, so nothing was changed. Read it "
        "first: call Read with file_path={path!r}."
    ),
):
    """The whole file was rewritten since its lines were shown with tags."""


class ChangesOverlap(ToolFault):
    """Two changes affect the same line."""

    code = "edit.overlap"

    def __init__(self, one: int, other: int, line: int) -> None:
        super().__init__(
            f"Changes {one + 1} and {other + 1} both affect line {line}, so nothing was "
            "changed. Combine them into one change.",
            data={"changes": [one, other], "line": line},
        )


class IsNotebook(
    TemplateFault,
    code="notebook.by_cells",
    sentence="{path} is a notebook, which has no tagged lines. Use NotebookEdit.",
):
    """A notebook is edited by cells, not by lines."""


class NoEdits(
    TemplateFault,
    code="edit.no_change",
    sentence="No changes to make: `edits` is empty. Give at least one edit.",
):
    """A list of edits is empty."""


class EmptyOldString(
    TemplateFault,
    code="edit.empty_old_string",
    sentence=(
        "old_string is empty. Only the first edit may leave it empty, to create a file. Give "
        "the text to replace."
    ),
):
    """Only the first edit of a new file may have an empty `old_string`."""


class AmbiguousHunk(ToolFault):
    """The lines of a hunk occur in more than one place."""

    code = "edit.many_matches"

    def __init__(self, old: str, count: int, lines: list[int], matched_with: str) -> None:
        where = ", ".join(map(str, lines[:20]))
        how = "" if matched_with == "exact" else f" (matched by {matched_with.replace('_', ' ')})"
        super().__init__(
            f"Found {count} places for the hunk, but it must match exactly one. Give more "
            "unchanged lines around the change, or name the enclosing function or class "
            f"as `@@ line`.\nLines: {_shorten_text(old)}\nThe places start on lines "
            f"{where}{how}.",
            data={"lines": lines, "count": count, "matched_with": matched_with},
        )


class NoPlaceToAdd(ToolFault):
    """A hunk only adds lines and does not say where."""

    code = "patch.no_place"

    def __init__(self, new: tuple[str, ...]) -> None:
        shown = "\n".join(f"+{line}" for line in new)
        super().__init__(
            "The hunk only adds lines and does not say where. Give unchanged lines "
            "around them, an `@@ line` that comes before them, or `*** End of File` "
            f"after them.\nLines: {_shorten_text(shown)}"
        )


class HunksOverlap(
    TemplateFault,
    code="patch.overlap",
    sentence=(
        "The hunk changes line {line}, which another hunk of the patch changes too. Combine "
        "them into one hunk."
    ),
    data={"line": "line"},
):
    """Two hunks of a patch change the same lines."""


class PatchInvalid(ToolFault):
    """The text is not a valid patch."""

    code = "patch.invalid"

    def __init__(self, line: int, reason: str) -> None:
        where = f" (line {line} of it)" if line else ""
        super().__init__(
            f"The patch is invalid{where}: {reason}. Nothing was changed. A patch begins "
            "with `*** Begin Patch`, names files with `*** Update File: path`, `*** Add "
            "File: path` or `*** Delete File: path`, and ends with `*** End Patch`.",
            data={"line": line},
        )


class NamedTwice(
    TemplateFault,
    code="patch.invalid",
    sentence="The patch names {path} twice. Nothing was changed. Combine the two sections.",
):
    """A patch has two sections for the same file."""


class InTheWay(
    TemplateFault,
    code="file.exists",
    sentence=(
        "Cannot create new file - file already exists. {path} is not empty; change it with "
        "`*** Update File`, or choose another path."
    ),
):
    """A patch adds or moves a file to a path that exists."""


class PatchBroken(ToolFault):
    """A file of a patch could not be written; the files written before it were restored."""

    code = "patch.broken_off"

    def __init__(self, fault: ToolFault, path: str, restored: list[str], left: list[str]) -> None:
        told = f"{fault.sentence} The patch was not applied."
        if restored:
            told += f" Restored: {', '.join(restored)}."
        if left:
            told += f" Could not be restored and stay changed: {', '.join(left)}. Undo may help."
        super().__init__(
            told,
            data={
                **fault.data,
                "path": path,
                "cause": fault.code,
                "restored": restored,
                "left": left,
            },
        )


class AlreadyThere(
    TemplateFault,
    code="file.exists",
    sentence=(
        "Cannot create new file - file already exists. {path} is not empty; give the text to "
        "replace as old_string, or use Write."
    ),
):
    """An empty old_string creates a file, but the file exists."""


class TooLargeToShow(
    FileTooLarge,
    code="file.too_large",
    sentence=(
        "{path} has {size_bytes:,} bytes; the limit for pictures and PDFs is {limit_bytes:,}. "
        "Make a smaller copy with another program first."
    ),
):
    """A picture or PDF is larger than the limit."""


class NotebookInvalid(
    TemplateFault,
    code="notebook.invalid",
    sentence=(
        "{path} is not a valid notebook: {reason}. Nothing was changed. Read shows it as text; "
        "repair it first."
    ),
):
    """The file is not a notebook that can be edited by cells."""


class NoCell(ToolFault):
    """The input names no cell, or more than one."""

    code = "notebook.no_cell"

    def __init__(self, problem: str, near: list[str]) -> None:
        hint = f" Cells: {', '.join(near)}." if near else ""
        super().__init__(
            f"{problem}{hint} Give a cell's id, or its index from 0 as `cell-3`.",
            data={"near": near},
        )


class CellUnchanged(
    TemplateFault,
    code="edit.no_change",
    sentence="No changes to make: cell {address!r} has this source already.",
):
    """The cell already has the new source."""


def _shorten_text(text: str, limit_chars: int = 2_000) -> str:
    if len(text) <= limit_chars:
        return text
    return f"{text[:limit_chars]}... ({len(text):,} characters)"
