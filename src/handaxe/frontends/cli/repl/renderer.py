"""What a person sees of a run: the answer, every call in a line, every change as a diff."""

import sys
from typing import Any, cast

import msgspec

from handaxe.agent.events import (
    AgentEvent,
    FromAgent,
    MessageAdded,
    Nudged,
    RunFinished,
    Told,
    ToolAnswered,
    ToolCalled,
)
from handaxe.agent.run_hooks__hook_reports import SlowHooks
from handaxe.app.session import Session
from handaxe.contract.display import Diff, Table, Text
from handaxe.contract.events import Compacted, Event, HookRan
from handaxe.contract.messages import AssistantMessage
from handaxe.contract.ports.model import Retrying, TextDelta
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.render import BlockRenderer, write_raw, write_rendered
from handaxe.frontends.cli.repl import renderer__moments as moments
from handaxe.frontends.cli.repl.markdown import create_answer_renderer
from handaxe.text.escape import to_visible_text
from handaxe.text.escape__counting import format_count

_MAX_TITLE_CHARS = 200
_MAX_DIFF_LINES = 80
_MAX_FAULT_LINES = 4


class ReplRenderer:
    """Paints the events of a run in the order they come."""

    def __init__(self, *, colour: bool) -> None:
        self._painter = BlockRenderer(colour=colour)
        self._answer = create_answer_renderer(colour=colour)
        self._inputs: dict[str, Any] = {}
        self._slow_hooks = SlowHooks()

    def show(self, event: AgentEvent, session: Session) -> None:
        """Paint one event."""
        match event:
            case TextDelta():
                self._answer.add(event.text)
            case ToolCalled():
                self._inputs[event.call.id] = event.call.input
                self.say(_format_title(session, event.call.tool, event.call.input))
            case ToolAnswered():
                self._result(session, event.result)
            case MessageAdded() if isinstance(event.message, AssistantMessage):
                self._answer.end()
            case FromAgent():
                self._handle_agent_event(event, session)
            case Told() | Nudged():
                self.say(event.sentence, "muted")
            case Retrying():
                self.say(f"{event.sentence} Trying again in {event.delay_s:.1f} s.", "warning")
            case Compacted():
                before, after = event.tokens_before, event.tokens_after
                self.say(f"The conversation was made shorter: {before:,} → {after:,} tokens.")
            case RunFinished():
                self._finish(event)
            case _:
                pass

    def hear(self, event: Event) -> None:
        """What a hook has for the terminal itself, whenever it comes, and that it is slow."""
        if not isinstance(event, HookRan):
            return
        if event.sequence:
            write_raw(event.sequence)
            sys.stdout.flush()
        if (slow := self._slow_hooks.heard(event)) is not None:
            self.say(slow, "warning")

    def say(self, text: str, tone: str = "plain") -> None:
        """One line of our own."""
        self._answer.end()
        write_rendered(self._painter.block(Text(text, tone)))
        sys.stdout.flush()

    def finish_output(self) -> None:
        """Finish what is half shown: somebody else is about to write."""
        self._answer.end()

    def table(self, table: Table) -> None:
        """Rows under column names."""
        self._answer.end()
        write_rendered(self._painter.block(table))
        sys.stdout.flush()

    def blocks(self, result: ToolResult) -> None:
        """A result with everything it shows."""
        self.say(result.text, "plain" if result.ok else "bad")
        for block in result.display or ():
            write_rendered(self._painter.block(block))
        for note in result.notes:
            self.say(note, "muted")

    def _result(self, session: Session, result: ToolResult) -> None:
        self._answer.end()
        given = self._inputs.pop(result.id, {})
        if not result.ok:
            self._show_failure(
                _format_title(session, result.tool, given).removeprefix("● "), result
            )
            return
        shown = session.show(result, _to_mapping(given)) or ()
        for block in shown:
            if isinstance(block, Diff):
                write_rendered(_truncate_diff(self._painter.block(block)))
        self.say(f"  ✓ {_summarize_result(result)}", "muted")

    def _show_failure(self, title: str, result: ToolResult) -> None:
        """That a call was refused or failed, and the beginning of why."""
        for number, block in enumerate(moments.render_unsuccessful(title, result)):
            if isinstance(block, Text):
                lines = to_visible_text(block.text, lines=True).splitlines()[:_MAX_FAULT_LINES]
                mark = "✗" if number == 0 else " "
                self.say("\n".join(f"  {mark} {line}" for line in lines), block.tone)

    def _handle_agent_event(self, event: FromAgent, session: Session) -> None:
        inner = event.event
        if isinstance(inner, FromAgent):
            self._handle_agent_event(inner, session)
        elif isinstance(inner, ToolCalled):
            title = _format_title(session, inner.call.tool, inner.call.input).removeprefix("● ")
            self.say(f"  ↳ {event.agent_type}: {title}", "muted")

    def _finish(self, final: RunFinished) -> None:
        self._answer.end()
        if final.is_error:
            self.say(final.result, "bad")
        took = f"{final.duration_ms / 1000:.1f} s"
        tokens = f"{final.usage.input_tokens:,} in, {final.usage.output_tokens:,} out"
        cost = "" if final.cost_usd is None else f", ${final.cost_usd:.4f}"
        self.say(f"({took}, {tokens}{cost})", "muted")


def _format_title(session: Session, tool: str, given: object) -> str:
    """A call in one line."""
    try:
        text = session.catalog.find(tool)[0].title(_to_mapping(given))
    except Exception:  # noqa: BLE001 - a name nobody knows, or a title that trips over its input
        text = f"{tool}({msgspec.json.encode(given, enc_hook=str).decode()})"
    line = " ".join(to_visible_text(text).split())
    return f"● {line if len(line) <= _MAX_TITLE_CHARS else line[:_MAX_TITLE_CHARS] + '…'}"


def _to_mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _summarize_result(result: ToolResult) -> str:
    lines = result.text.strip().splitlines()
    first = lines[0].strip() if lines else "done"
    more = f" (+{format_count(len(lines) - 1, 'line')})" if len(lines) > 1 else ""
    return f"{first[:_MAX_TITLE_CHARS]}{more}"


def _truncate_diff(text: str) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) <= _MAX_DIFF_LINES:
        return text
    more = format_count(len(lines) - _MAX_DIFF_LINES, "more line")
    return "".join(lines[:_MAX_DIFF_LINES]) + f"... {more}; `handaxe history` has all\n"
