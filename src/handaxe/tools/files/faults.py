"""What Write, Edit and NotebookEdit can be refused for."""

from handaxe.contract.faults import ToolFault
from handaxe.contract.file_faults import TooLarge


class NotRead(ToolFault):
    """Edit or Write was asked for a file this session has not read."""

    code = "file.not_read"

    def __init__(self, path: str) -> None:
        super().__init__(
            "File has not been read yet. Read it first before writing to it. "
            f"Call Read with file_path={path!r}."
        )


class NotReadWhole(ToolFault):
    """Write was asked to replace a file of which only a part was read."""

    code = "file.not_read"

    def __init__(self, path: str, seen: tuple[tuple[int, int], ...], total: int | None) -> None:
        ranges = ", ".join(f"{first}-{last}" for first, last in seen)
        of_all = f" of {total}" if total else ""
        super().__init__(
            "File has not been read yet. Read it first before writing to it: only lines "
            f"{ranges}{of_all} were seen, and Write replaces all of it. Read the rest of "
            f"{path}, or use Edit."
        )


class ChangedSinceRead(ToolFault):
    """The file has other content than what was read."""

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

    def __init__(self, old: str, help_text: str) -> None:
        super().__init__(
            f"String to replace not found in file.\nString: {_short(old)}"
            + (f"\n\n{help_text}" if help_text else "")
        )


class ManyMatches(ToolFault):
    """The text to replace stands in more than one place."""

    code = "edit.many_matches"

    def __init__(self, old: str, count: int, lines: list[int], matched_with: str) -> None:
        where = ", ".join(map(str, lines[:20]))
        how = "" if matched_with == "exact" else f" (matched by {matched_with.replace('_', ' ')})"
        super().__init__(
            f"Found {count} matches of the string to replace, but replace_all is false. To "
            "replace all occurrences, set replace_all to true. To replace only one occurrence, "
            "please provide more context to uniquely identify the instance.\n"
            f"String: {_short(old)}\nThe matches start on lines {where}{how}.",
            data={"lines": lines, "count": count, "matched_with": matched_with},
        )


class NoChange(ToolFault):
    """Old and new text are the same."""

    code = "edit.no_change"

    def __init__(self) -> None:
        super().__init__("No changes to make: old_string and new_string are exactly the same.")


class AlreadyThere(ToolFault):
    """An empty old_string creates a file, and the file exists."""

    code = "file.exists"

    def __init__(self, path: str) -> None:
        super().__init__(
            f"Cannot create new file - file already exists. {path} is not empty; give the text "
            "to replace as old_string, or use Write."
        )


class TooLargeToShow(TooLarge):
    """A picture or PDF of more bytes than are taken into memory at once."""

    def __init__(self, path: str, size_bytes: int, limit_bytes: int) -> None:
        ToolFault.__init__(
            self,
            f"{path} has {size_bytes:,} bytes; pictures and PDFs are opened up to "
            f"{limit_bytes:,}. Make a smaller copy with another program first.",
        )


class NotebookInvalid(ToolFault):
    """The file is no notebook that could be changed cell by cell."""

    code = "notebook.invalid"

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not a valid notebook: {reason}. Nothing was changed. Read shows it as "
            "text; mend it with Edit first."
        )


class NoCell(ToolFault):
    """No cell, or not exactly one, was named."""

    code = "notebook.no_cell"

    def __init__(self, problem: str, near: list[str]) -> None:
        hint = f" Cells: {', '.join(near)}." if near else ""
        super().__init__(
            f"{problem}{hint} Give a cell's id, or its index from 0 as `cell-3`.",
            data={"near": near},
        )


class CellUnchanged(ToolFault):
    """A cell was to be replaced by what it already is."""

    code = "edit.no_change"

    def __init__(self, address: str) -> None:
        super().__init__(f"No changes to make: cell {address!r} has this source already.")


def _short(text: str, limit_chars: int = 2_000) -> str:
    if len(text) <= limit_chars:
        return text
    return f"{text[:limit_chars]}... ({len(text):,} characters)"
