"""What a person sees of a run: the answer, every call in a line, every change as a diff."""

import sys
from collections.abc import Sequence
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
from handaxe.agent.run_hooks import SlowHooks
from handaxe.app.session import Session, get_parts
from handaxe.app.tool_listing import build_display
from handaxe.contract.display import Diff, Display, Items, Table, Text
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
        shown = build_display(get_parts(session).catalog, result, _to_mapping(given)) or ()
        for block in shown:
            if isinstance(block, Diff):
                write_rendered(_truncate_diff(self._painter.block(block)))
        self.say(f"  ✓ {_summarize_result(result)}", "muted")

    def _show_failure(self, title: str, result: ToolResult) -> None:
        """That a call was refused or failed, and the beginning of why."""
        for number, block in enumerate(render_unsuccessful(title, result)):
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
        text = get_parts(session).catalog.find(tool)[0].title(_to_mapping(given))
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


_REFUSALS = ("permission.", "hook.")


def render_queued(title: str) -> Display:
    """The call waits for its turn."""
    return (Text(f"{title} (waiting)", "muted"),)


def render_progress(title: str, progress: str) -> Display:
    """The call runs and says how far it is."""
    return (Text(title), Text(progress, "muted"))


def render_rejection(title: str, result: ToolResult) -> Display:
    """The call was not allowed to run."""
    rule = result.decision.rule if result.decision else None
    by = f" (rule {rule})" if rule else ""
    return (Text(f"{title} was not run{by}", "warning"), Text(result.text, "warning"))


def render_failure(title: str, result: ToolResult) -> Display:
    """The call ran into something."""
    return (
        Text(f"{title} failed ({result.code})", "bad"),
        Text(result.text, "bad"),
    )


def render_unsuccessful(title: str, result: ToolResult) -> Display:
    """Refused or failed, whichever it was."""
    is_refusal = (result.code or "").startswith(_REFUSALS)
    return render_rejection(title, result) if is_refusal else render_failure(title, result)


def render_summary(title: str, summary: str) -> Display:
    """A result in one line."""
    return (Text(f"{title}: {summary}" if summary else title),)


def render_group(titles: Sequence[str], results: Sequence[ToolResult | None]) -> Display:
    """Several calls of one message as one list; None stands for a call that still runs."""
    done = sum(result is not None for result in results)
    lines = tuple(f"{_mark(result)} {title}" for title, result in zip(titles, results, strict=True))
    return (Text(f"{done} of {len(titles)} calls done"), Items(lines))


def _mark(result: ToolResult | None) -> str:
    if result is None:
        return "…"
    return "✓" if result.ok else "✗"
