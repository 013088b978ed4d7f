"""What a person sees of a call and its result, in the words of its tool.

Where a method of the tool fails, its default is shown.
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import msgspec

from handaxe.catalog.catalog import Catalog
from handaxe.contract.display import CallDisplay, Display, Items, Table, Text
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool
from handaxe.text.escape import format_count

MAX_LINE_CHARS = 200
_REFUSALS = ("permission.", "hook.")


class ResultPresenter:
    """Presents calls and results, without the events around them."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    def present_title(self, tool: str, given: object) -> str:
        """A call in one line, also while its input is not complete."""
        found = self._find_tool(tool)
        fields = _to_mapping(given)
        title: str | None = None if found is None else _ask(lambda: found.title(fields), str)
        if title is None or not title.strip():
            encoded = _ask(lambda: msgspec.json.encode(given, enc_hook=str).decode(), str)
            title = f"{tool}({encoded or ''})"
        return to_display_line(title)

    def present_result(
        self, result: ToolResult, given: object, *, title: str | None = None
    ) -> CallDisplay:
        """How a call ended: with its blocks, refused, or failed."""
        title = self.present_title(result.tool, given) if title is None else title
        notes = tuple(Text(note, "muted") for note in result.notes)
        named = {"call_id": result.id, "tool": result.tool, "title": title}
        if result.ok:
            blocks, summary = self._show(result, given)
            return CallDisplay(
                **named,
                moment="finished",
                headline=to_display_line(f"{title}: {summary}" if summary else title),
                summary=to_display_line(summary),
                blocks=(*blocks, *notes),
            )
        if (result.code or "").startswith(_REFUSALS):
            rule = result.decision.rule if result.decision is not None else None
            by = f" (rule {rule})" if rule else ""
            return CallDisplay(
                **named,
                moment="rejected",
                headline=to_display_line(f"{title} was not run{by}"),
                tone="warning",
                blocks=(Text(result.text, "warning"), *notes),
            )
        return CallDisplay(
            **named,
            moment="failed",
            headline=to_display_line(f"{title} failed ({result.code})"),
            tone="bad",
            blocks=(Text(result.text, "bad"), *notes),
        )

    def _show(self, result: ToolResult, given: object) -> tuple[Display, str]:
        """The blocks of a success, and its summary."""
        from handaxe.schema.validate import InputProblems, read_input

        blocks: Display | None = None
        summary: str | None = None
        if (tool := self._find_tool(result.tool)) is not None:
            try:
                args = read_input(tool.args_type, _to_mapping(given))[0]
            except InputProblems:
                args = None
            if args is not None:
                blocks = _ask(lambda: tool.show(args, result), Display)
                summary = _ask(lambda: tool.summary(args, result), str)
        if blocks is None:
            blocks = (Text(result.text),)
        elif result.tool != "Read" and not any(isinstance(b, Text | Items | Table) for b in blocks):
            # A diff shows what changed; the words say where, and how it went.
            blocks = (Text(result.text), *blocks)
        return blocks, _summarize(result) if summary is None else summary

    def _find_tool(self, name: str) -> Tool[Any] | None:
        # A name nobody knows, or a tool that fails to load.
        return _ask(lambda: self._catalog.find(name)[0], None)


def _ask(method: Callable[[], Any], kind: Any) -> Any:  # noqa: ANN401 - any type of a method
    """What own code gives if it is of this kind; None where it fails, however it does."""
    try:
        shown = method()
        if kind is None or shown is None:
            return shown
        if hasattr(shown, "close") and hasattr(shown, "send"):
            # It was declared as an async function.
            shown.close()
        if not isinstance(shown, str if kind is str else list | tuple):
            return None
        # Blocks with members of other types would fail where they are painted.
        return msgspec.convert(msgspec.to_builtins(shown), kind)
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 - what is shown never ends a session, nor does sys.exit
        return None


def _to_mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def to_display_line(text: str) -> str:
    """A text in one line that is not too long."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_LINE_CHARS else f"{line[: MAX_LINE_CHARS - 1]}…"


def _summarize(result: ToolResult) -> str:
    lines: Sequence[str] = result.text.strip().splitlines()
    first = lines[0].strip() if lines else ""
    return f"{first} (+{format_count(len(lines) - 1, 'line')})" if len(lines) > 1 else first
