"""A window of a text file with line numbers."""

from handaxe.contract.ports.files import FileWindow
from handaxe.contract.result import ToolResult
from handaxe.session.read_ledger import ReadLedger
from handaxe.text.escape import format_count
from handaxe.text.line_window import LineFormat, number_lines
from handaxe.tools.files.read.read_data import Indentation, TextData, TextFileData

CHARS_PER_TOKEN = 4
LINE_CHARS = 2_000
SHOWN_CUTS = 5

_TOLD: dict[str | None, str] = {
    "tabs": "The file is indented with tabs.",
    "mixed": "Some lines of the file are indented with tabs, others with spaces.",
}
"""Notes about what models often get wrong; each is shown once per file."""


class TextPage:
    """A page of a text file for the model and the host."""

    def __init__(
        self,
        window: FileWindow,
        path: str,
        *,
        offset: int,
        column: int,
        line_format: LineFormat,
        max_tokens: int,
        has_tags: bool = False,
    ) -> None:
        self._window = window
        self._path = path
        self._offset = offset
        self._column = column
        self._line_format: LineFormat = line_format
        self._max_chars = max_tokens * CHARS_PER_TOKEN
        self._has_tags = has_tags
        self._notices: list[str] = []
        self._is_cut_short = False
        self._cut_numbers: list[int] = []

    def result(self, ledger: ReadLedger, *notices: str) -> ToolResult:
        """The result; notes about the file come before handaxe's other notices."""
        self._notices = list(notices)
        window = self._window
        shown = self._shorten_lines()
        last = window.first_line + len(shown) - 1
        if len(self._cut_numbers) > SHOWN_CUTS:
            more = self._cut_numbers[SHOWN_CUTS:]
            are = "is" if len(more) == 1 else "are"
            told = f"{format_count(len(more), 'more line')} {are} cut, the first of them {more[0]}."
            self._notices.append(told)
        self._note_missing(len(shown), last)
        if window.encoding != "utf-8":
            self._notices.append(
                f"The file is stored as {window.encoding}; Edit and Write keep this encoding."
            )
        is_new = self._column == 1 and ledger.find(window.version.path) is None
        if self._column == 1:
            self._remember(ledger, last)
        text = self._format_numbered(shown) if shown else ""
        if self._notices:
            text += ("\n\n" if text else "") + "\n".join(f"[{line}]" for line in self._notices)
        data = self._data(shown)
        told = _TOLD.get(data["indentation"]) if is_new else None
        return ToolResult(text=text, data=data, notes=(told,) if told else ())

    def _format_numbered(self, shown: list[str]) -> str:
        window = self._window
        if not self._has_tags:
            return number_lines(shown, window.first_line, self._line_format)
        from handaxe.text.line_tags import format_tagged_lines

        # The tag of a line that continues after the window is unknown.
        cut = window.first_line + len(window.lines) - 1 if window.is_cut else None
        if cut is not None and len(shown) == len(window.lines):
            self._notices.append(f"Line {cut} has no tag, because it is too long to read at once.")
        return format_tagged_lines(
            shown, window.first_line, self._line_format, whole=window.lines, untagged=cut
        )

    def _note_missing(self, count: int, last: int) -> None:
        window = self._window
        if not window.total_lines:
            self._notices.append("The file exists but is empty.")
        elif not count:
            self._notices.append(
                f"The file has only {format_count(window.total_lines, 'line')}; offset "
                f"{self._offset} is past its end. Its last lines: "
                f"Read(file_path={self._path!r}, offset=-20)"
            )
        elif last < window.total_lines:
            partial = "PARTIAL view. " if self._is_cut_short else ""
            self._notices.append(
                f"{partial}Showing lines {window.first_line}-{last} of "
                f"{window.total_lines:,} ({window.version.size_bytes:,} bytes). To "
                f"continue: Read(file_path={self._path!r}, offset={last + 1})"
            )

    def _shorten_lines(self) -> list[str]:
        """The lines, each cut to a useful length, as many as fit."""
        lines = self._window.lines
        if self._column > 1:
            self._notices.append(f"Lines are shown from column {self._column:,} on.")
            return self._cut_lines(lines)
        longest = max(map(len, lines), default=0)
        if self._window.is_cut or longest > LINE_CHARS:
            return self._cut_lines(lines)
        # Most windows could not be too long even if every line were as long as the longest.
        most = self._max_chars
        if longest * len(lines) > most and sum(map(len, lines)) > most:
            return self._cut_lines(lines)
        return lines

    def _cut_lines(self, lines: list[str]) -> list[str]:
        shown: list[str] = []
        begin, end = self._column - 1, self._column - 1 + LINE_CHARS
        left = self._max_chars
        for number, whole in enumerate(lines, self._window.first_line):
            line = whole[begin:end]
            left -= len(line)
            if left < 0 and shown:
                self._is_cut_short = True
                break
            shown.append(line)
            if len(whole) > end:
                self._note_continuation(number, len(whole), len(line), end)
        return shown

    def _note_continuation(self, number: int, length: int, shown: int, end: int) -> None:
        self._cut_numbers.append(number)
        if len(self._cut_numbers) > SHOWN_CUTS:
            return
        last = self._window.first_line + len(self._window.lines) - 1
        known = "at least " if self._window.is_cut and number == last else ""
        self._notices.append(
            f"Line {number} is cut: {shown:,} of {known}{length:,} characters shown. To "
            f"continue at column {end + 1}: Read(file_path={self._path!r}, "
            f"offset={number}, limit=1, column={end + 1})"
        )

    def _remember(self, ledger: ReadLedger, last: int) -> None:
        window = self._window
        is_whole = window.first_line <= 1 and last >= window.total_lines
        if not is_whole and last < window.first_line:
            return
        ledger.record_read(
            window.version,
            content=window.content,
            total_lines=window.total_lines,
            lines=None if is_whole else (window.first_line, last),
            shown=(window.first_line, last) if self._has_tags else None,
        )

    def _data(self, shown: list[str]) -> TextData:
        window = self._window
        content = "\n".join(shown)
        file: TextFileData = {
            "filePath": self._path,
            "content": content,
            "numLines": len(shown),
            "startLine": window.first_line,
            "totalLines": window.total_lines,
        }
        if self._is_cut_short:
            file["truncatedByTokenCap"] = True
        return {
            "type": "text",
            "file": file,
            "encoding": window.encoding,
            "hasBom": window.has_bom,
            "sizeBytes": window.version.size_bytes,
            "indentation": _detect_indentation(content),
        }


def _detect_indentation(content: str) -> Indentation | None:
    """The indentation of the shown lines, if any."""
    has_tabs = "\n\t" in content or content.startswith("\t")
    if "\n  " in content or content.startswith("  "):
        return "mixed" if has_tabs else "spaces"
    return "tabs" if has_tabs else None
