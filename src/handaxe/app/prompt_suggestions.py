"""A suggestion for the next prompt from the model of the conversation."""

from handaxe.agent.compaction import append_question, request_text
from handaxe.agent.events import RunFinished
from handaxe.agent.system_prompt import load_prompt
from handaxe.app.agent import Agent
from handaxe.contract.ports.model import ModelFailed, ModelRequest

MAX_CHARS = 200
_TOKENS = 400
_NONE = "NONE"


async def suggest_prompt(agent: Agent, final: RunFinished | None) -> str | None:
    """The next prompt, if there is one; None after an error and in plan mode.

    The request starts like the conversation, so that its cache is used.
    """
    if final is None or final.is_error or agent.session.permissions.mode == "plan":
        return None
    request = ModelRequest(
        system=agent.system_prompt(),
        messages=append_question(agent.messages, load_prompt("suggest")),
        tools=agent.workplace.specs(),
        tool_choice="none",
        max_tokens=_TOKENS,
        origin=agent.workplace.origin,
    )
    try:
        said = (await request_text(agent.model, request, agent.meter)).strip()
    except ModelFailed:
        return None
    first = said.partition("\n")[0].strip().strip('"`')
    return None if not first or first.strip(".") == _NONE or len(first) > MAX_CHARS else first
