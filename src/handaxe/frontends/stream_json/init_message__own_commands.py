"""Prompts that the runtime answers itself, without asking the model for an answer."""

from handaxe.agent.events import AgentEvent, RunFinished
from handaxe.app.agent import Agent
from handaxe.app.slash_commands import parse_slash_command


async def run_local_command(agent: Agent, prompt: str) -> list[AgentEvent] | None:
    """What happened, with the end last; None if the prompt is none of our commands."""
    typed = parse_slash_command(prompt)
    if typed is None or typed.name != "compact":
        return None
    done = await agent.compact(typed.arguments)
    if done is None:
        return [build_run_result(agent, "There is nothing to make shorter.", is_error=True)]
    return [done, build_run_result(agent, "The conversation was made shorter.", is_error=False)]


def build_run_result(agent: Agent, sentence: str, *, is_error: bool) -> RunFinished:
    """The end of a turn that never reached the model."""
    return RunFinished(
        subtype="success",
        is_error=is_error,
        terminal_reason="prompt_blocked" if is_error else "completed",
        result=sentence,
        session_id=agent.session.id,
        turns=0,
        errors=(sentence,) if is_error else (),
    )
