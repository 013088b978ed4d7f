"""Messages of the runtime in a conversation."""

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
"""The note about an interruption that was not by the user, by who ended the work."""
SUSPENDED = "The program ended before the work was done; it can be resumed."
UNFINISHED = {
    "max_tokens": "Your answer was cut off at its length limit. Continue exactly where it stopped.",
    "pause_turn": "Your answer was paused before its end. Continue exactly where it stopped.",
}
"""By the reason why an answer without calls ended too early: the message to the model."""
NOT_ACCEPTED = (
    "The final answer is not accepted yet. When this is settled, give it again with "
    "StructuredOutput, including changes since."
)
COME_TO_AN_END = "Finish the most important work now, and report what remains undone."
BROKEN_OFF = "The connection was lost during your answer. Continue exactly where you stopped."


def describe_stop(by: EndedBy, *, had_calls: bool) -> str:
    """The note about an interruption of the work."""
    return STOPPED.get(by) or (INTERRUPTED_TOOLS if had_calls else INTERRUPTED)


def format_agent_message(state: AgentState, text: str) -> str:
    """A message of a running agent to the main agent."""
    who = quote_line(f"{state.name or state.agent_id} ({state.description})")
    return f"This message is not from the user. The agent {who} says:\n\n{text.strip()}"


def format_denials(denied: Sequence[ToolResult]) -> str:
    """The denied calls of a background agent, for the reader of its report."""
    if not denied:
        return ""
    shown = "".join(f"\n- {result.tool}: {result.text[:300]}" for result in denied[:MAX_REFUSALS])
    more = len(denied) - MAX_REFUSALS
    rest = f"\n- ... and {more} more" if more > 0 else ""
    return f"\n\nRefused because of missing permission:{shown}{rest}"


def shorten_report(state: AgentState, max_chars: int) -> str:
    """An agent's final text, cut to the parent's limit."""
    where = describe_worktree(state)
    where = f"\n\n{where.strip()}" if where else ""
    if len(state.result) <= max_chars:
        return f"{state.result}{where}"
    return f"{state.result[:max_chars]}\n... (the rest is in {state.output_file}){where}"
