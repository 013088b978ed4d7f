"""Read: a window of a text file with line numbers, whatever the file's size."""

from math import inf
from typing import Annotated, Any

from handaxe.contract.context import ToolContext
from handaxe.contract.display import Code, Display, Text
from handaxe.contract.effects import Effects
from handaxe.contract.file_faults import NotFound
from handaxe.contract.ports.files import Files, Window
from handaxe.contract.result import ToolResult
from handaxe.contract.subjects import PathSubject, Subject
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.settings.model import Settings
from handaxe.text.windows import numbered
from handaxe.tools.files.missing import with_near_names

MAX_CHARS = 400_000


class ReadArgs(ToolArgs, kw_only=True):
    file_path: Annotated[str, "The path of the file to read, absolute if possible."]
    offset: Annotated[
        int | None, "The line to start from, counted from 1; negative counts from the end."
    ] = None
    limit: Annotated[int | None, "How many lines to read."] = None


class Read(Tool[ReadArgs]):
    """The text of a file, numbered."""

    search_hint = "show file contents, view source, cat, head, tail"
    uses = (Files, Workdir, ReadLedger, Settings)
    max_result_chars = inf
    default_lines = 2_000
    line_chars = 2_000

    def effects_of(self, args: ReadArgs) -> Effects:
        return Effects.reading(args.file_path)

    def subjects(self, args: ReadArgs) -> tuple[Subject, ...]:
        return (PathSubject(args.file_path, "read", "file_path"),)

    async def call(self, args: ReadArgs, ctx: ToolContext) -> ToolResult:
        path = ctx[Workdir].resolve(args.file_path)
        offset = args.offset or 1
        limit = self.default_lines if args.limit is None else max(1, args.limit)
        try:
            window = await ctx[Files].window(path, offset, limit)
        except NotFound as missing:
            raise await with_near_names(missing, path, ctx) from None
        return _Page(window, path, args, ctx[Settings].read.line_format).result(ctx[ReadLedger])

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"Read({partial_input.get('file_path', '')})"

    def show(self, args: ReadArgs, result: ToolResult) -> Display | None:
        if not result.ok:
            return None
        file = result.data["file"]
        code = Code(file["content"], file["filePath"], file["startLine"])
        if not file["numLines"] or file["numLines"] < file["totalLines"]:
            return code, Text(result.text.rpartition("\n\n")[2], "muted")
        return (code,)

    def summary(self, args: ReadArgs, result: ToolResult) -> str:
        if not result.ok:
            return super().summary(args, result)
        return f"Read {result.data['file']['numLines']} lines of {result.data['file']['filePath']}"


class _Page:
    """A window as the model and the host get it."""

    def __init__(self, window: Window, path: str, args: ReadArgs, line_format: Any) -> None:
        self._window = window
        self._path = path
        self._args = args
        self._line_format = line_format
        self._notices: list[str] = []

    def result(self, ledger: ReadLedger) -> ToolResult:
        window = self._window
        shown = self._shown_lines()
        last = window.first_line + len(shown) - 1
        if not window.total_lines:
            self._notices.append("The file exists but is empty.")
        elif not shown:
            self._notices.append(
                f"The file has only {window.total_lines:,} lines; offset {self._args.offset} is "
                "past its end."
            )
        elif last < window.total_lines:
            self._notices.append(
                f"Showing lines {window.first_line}-{last} of {window.total_lines:,} "
                f"({window.version.size_bytes:,} bytes). To go on: "
                f"Read(file_path={self._path!r}, offset={last + 1})"
            )
        self._remember(ledger, last)
        text = numbered(shown, window.first_line, self._line_format) if shown else ""
        if self._notices:
            text += ("\n\n" if text else "") + "\n".join(f"[{line}]" for line in self._notices)
        return ToolResult(text=text, data=self._data(shown))

    def _shown_lines(self) -> list[str]:
        """The lines, each cut to what is useful, and not more of them than fits."""
        lines, limit = self._window.lines, Read.line_chars
        lengths = list(map(len, lines))
        if self._window.is_cut or sum(lengths) > MAX_CHARS or max(lengths, default=0) > limit:
            return self._cut_lines(lines, limit)
        return lines

    def _cut_lines(self, lines: list[str], limit: int) -> list[str]:
        shown: list[str] = []
        left = MAX_CHARS
        for number, line in enumerate(lines, self._window.first_line):
            is_open = self._window.is_cut and number == self._window.first_line + len(lines) - 1
            if len(line) > limit:
                length = "at least " if is_open else ""
                self._notices.append(
                    f"Line {number} is cut: {limit:,} of {length}{len(line):,} characters shown; "
                    f"it goes on at column {limit + 1}"
                )
                line = line[:limit]
            left -= len(line)
            if left < 0 and shown:
                break
            shown.append(line)
        return shown

    def _remember(self, ledger: ReadLedger, last: int) -> None:
        window = self._window
        is_whole = window.first_line <= 1 and last >= window.total_lines
        if not is_whole and last < window.first_line:
            return
        ledger.saw(
            window.version,
            content=window.content,
            total_lines=window.total_lines,
            lines=None if is_whole else (window.first_line, last),
        )

    def _data(self, shown: list[str]) -> dict[str, Any]:
        window = self._window
        return {
            "type": "text",
            "file": {
                "filePath": self._path,
                "content": "\n".join(shown),
                "numLines": len(shown),
                "startLine": window.first_line,
                "totalLines": window.total_lines,
            },
            "encoding": window.encoding,
            "sizeBytes": window.version.size_bytes,
        }
