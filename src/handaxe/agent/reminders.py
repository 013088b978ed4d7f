"""Sentences the runtime puts into a conversation."""

from collections.abc import Sequence

from handaxe.contract.job_state import EndedBy
from handaxe.contract.ports.agents import AgentState, describe_worktree
from handaxe.contract.result import ToolResult
from handaxe.text.framing import quote_line

MAX_REFUSALS = 5
INTERRUPTED = "[Request interrupted by user]"
INTERRUPTED_TOOLS = "[Request interrupted by user for tool use]"
STOPPED: dict[EndedBy, str] = {
    "parent": "[Stopped by the agent that started this one]",
    "call": "[Stopped together with the call that started this agent]",
    "session": "[Stopped because the session ended]",
}
"""The message about a stop that the user did not request, by who ended the work."""
SUSPENDED = "The program ended before the work did; it can be resumed."
UNFINISHED = {
    "max_tokens": "Your answer was cut off at its length limit. Go on exactly where it stopped.",
    "pause_turn": "Your answer was paused before its end. Go on exactly where it stopped.",
}
"""The message for the model, by the reason why an answer without calls ended too early."""
NOT_ACCEPTED = (
    "The final answer is not accepted yet. When this is settled, give it again with "
    "StructuredOutput, with what has changed since."
)
COME_TO_AN_END = "Finish the most important work now, and name the unfinished parts."
BROKEN_OFF = "The connection broke while you were answering. Go on exactly where you stopped."


def describe_stop(by: EndedBy, *, had_calls: bool) -> str:
    """The message for work that was stopped before it finished."""
    return STOPPED.get(by) or (INTERRUPTED_TOOLS if had_calls else INTERRUPTED)


def format_agent_message(state: AgentState, text: str) -> str:
    """What an agent at work has to say to the session's own."""
    who = quote_line(f"{state.name or state.agent_id} ({state.description})")
    return f"No person said this. The agent {who} says:\n\n{text.strip()}"


def format_denials(denied: Sequence[ToolResult]) -> str:
    """The refused calls of a background agent, for the reader of its report."""
    if not denied:
        return ""
    shown = "".join(f"\n- {result.tool}: {result.text[:300]}" for result in denied[:MAX_REFUSALS])
    more = len(denied) - MAX_REFUSALS
    rest = f"\n- ... and {more} more" if more > 0 else ""
    return f"\n\nRefused for want of permission:{shown}{rest}"


def shorten_report(state: AgentState, max_chars: int) -> str:
    """What an agent said at its end, no longer than a parent wants to hear."""
    where = describe_worktree(state)
    where = f"\n\n{where.strip()}" if where else ""
    if len(state.result) <= max_chars:
        return f"{state.result}{where}"
    return f"{state.result[:max_chars]}\n... (the rest is in {state.output_file}){where}"
