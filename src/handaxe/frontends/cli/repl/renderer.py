"""Renders a run: the answer, one line per call, changes as diffs."""

import sys
from typing import Any

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
from handaxe.agent.run_hooks import SlowHooks
from handaxe.app.session import Session
from handaxe.contract.call import ToolCall
from handaxe.contract.display import Diff, Table, Text
from handaxe.contract.events import Compacted, Event, HookRan
from handaxe.contract.messages import AssistantMessage
from handaxe.contract.ports.model import Retrying, TextDelta
from handaxe.contract.result import ToolResult
from handaxe.frontends.cli.render import BlockRenderer, write_raw, write_rendered
from handaxe.frontends.cli.repl.markdown import create_answer_renderer
from handaxe.text.escape import format_count, to_visible_text

_MAX_TITLE_CHARS = 200
_MAX_DIFF_LINES = 80
_MAX_FAULT_LINES = 4


class ReplRenderer:
    """Renders the events of a run in order."""

    def __init__(self, *, colour: bool) -> None:
        self._painter = BlockRenderer(colour=colour)
        self._answer = create_answer_renderer(colour=colour)
        self._inputs: dict[str, Any] = {}
        self._slow_hooks = SlowHooks()

    def show(self, event: AgentEvent, session: Session) -> None:
        """Render one event."""
        match event:
            case TextDelta():
                self._answer.add(event.text)
            case ToolCalled():
                self._inputs[event.call.id] = event.call.input
                self.say(f"● {_format_title(session, event.call)}")
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
                self.say(f"Compacted the conversation: {before:,} → {after:,} tokens.")
            case RunFinished():
                self._finish(event)
            case _:
                pass

    def hear(self, event: Event) -> None:
        """Show terminal output of hooks at any time, and slow hooks."""
        if not isinstance(event, HookRan):
            return
        if event.sequence:
            write_raw(event.sequence)
            sys.stdout.flush()
        if (slow := self._slow_hooks.heard(event)) is not None:
            self.say(slow, "warning")

    def say(self, text: str, tone: str = "plain") -> None:
        """Print a line of handaxe."""
        self._answer.end()
        write_rendered(self._painter.block(Text(text, tone)))
        sys.stdout.flush()

    def finish_output(self) -> None:
        """Finish the current output, because other output follows."""
        self._answer.end()

    def table(self, table: Table) -> None:
        """Print a table."""
        self._answer.end()
        write_rendered(self._painter.block(table))
        sys.stdout.flush()

    def blocks(self, result: ToolResult) -> None:
        """Print the blocks of a result."""
        self.say(result.text, "plain" if result.ok else "bad")
        for block in result.display or ():
            write_rendered(self._painter.block(block))
        for note in result.notes:
            self.say(note, "muted")

    def _result(self, session: Session, result: ToolResult) -> None:
        self._answer.end()
        shown = session.presenter().present_result(result, self._inputs.pop(result.id, {}))
        if not result.ok:
            lines = to_visible_text(result.text, lines=True).splitlines()[:_MAX_FAULT_LINES]
            self.say("\n".join((f"  ✗ {shown.headline}", *(f"    {each}" for each in lines))),
                     shown.tone)  # fmt: skip
            return
        for block in shown.blocks:
            if isinstance(block, Diff):
                write_rendered(_truncate_diff(self._painter.block(block)))
        self.say(f"  ✓ {shown.summary or 'done'}", "muted")

    def _handle_agent_event(self, event: FromAgent, session: Session) -> None:
        inner = event.event
        if isinstance(inner, FromAgent):
            self._handle_agent_event(inner, session)
        elif isinstance(inner, ToolCalled):
            self.say(f"  ↳ {event.agent_type}: {_format_title(session, inner.call)}", "muted")

    def _finish(self, final: RunFinished) -> None:
        self._answer.end()
        if final.is_error:
            self.say(final.result, "bad")
        took = f"{final.duration_ms / 1000:.1f} s"
        tokens = f"{final.usage.input_tokens:,} in, {final.usage.output_tokens:,} out"
        cost = "" if final.cost_usd is None else f", ${final.cost_usd:.4f}"
        self.say(f"({took}, {tokens}{cost})", "muted")


def _format_title(session: Session, call: ToolCall) -> str:
    """A call in one line."""
    return to_visible_text(session.presenter().present_title(call.tool, call.input))


def _truncate_diff(text: str) -> str:
    lines = text.splitlines(keepends=True)
    if len(lines) <= _MAX_DIFF_LINES:
        return text
    more = format_count(len(lines) - _MAX_DIFF_LINES, "more line")
    return "".join(lines[:_MAX_DIFF_LINES]) + f"... {more}; `handaxe history --diff` shows all\n"
