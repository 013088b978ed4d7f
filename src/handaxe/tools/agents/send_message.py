"""SendMessage: send a message to an agent by its id or name."""

from typing import Annotated, Any, NotRequired, TypedDict

import msgspec

from handaxe.contract.context import ToolContext
from handaxe.contract.decision import Allow, Decision
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import Subject, TextSubject
from handaxe.contract.ports.agents import Agents
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs

MAX_SUMMARY_CHARS = 200
MAIN = "main"
"""The name of the session's main agent."""


class SendMessageArgs(ToolArgs, kw_only=True):
    to: Annotated[
        str,
        msgspec.Meta(min_length=1),
        "The agent's id or name; `main` is the session's main agent.",
    ]
    message: Annotated[str, msgspec.Meta(min_length=1), "The message."]
    summary: Annotated[str | None, "The message in a few words, for the user."] = None


class SendMessageData(TypedDict):
    """The agent that got the message."""

    agentId: str
    resumed: Annotated[bool, "Whether it had ended and runs again now."]
    summary: str
    outputFile: NotRequired[Annotated[str, "Its output; not for the main agent."]]


class SendMessage(Tool[SendMessageArgs]):
    """A message to a running or finished agent."""

    search_hint = "send a message to a running or finished agent"
    output_type = SendMessageData
    uses = (Agents,)
    effects = Effects.on_state("agent messages")
    input_examples = ({"to": "a0123456789abcdef", "message": "Check the tests too."},)
    defer = True

    def subjects(self, args: SendMessageArgs) -> tuple[Subject, ...]:
        return (TextSubject(args.to),)

    async def decide(self, args: SendMessageArgs, ctx: ToolContext) -> Decision | None:
        return Allow("the agent's own calls each need permission")

    async def call(self, args: SendMessageArgs, ctx: ToolContext) -> ToolResult:
        agents = ctx[Agents]
        summary = args.summary or args.message.strip().partition("\n")[0]
        summary = summary[:MAX_SUMMARY_CHARS]
        if args.to == MAIN and agents.tell_main(args.message):
            text = "The main agent gets the message when its current calls are done."
            told: SendMessageData = {"agentId": MAIN, "resumed": False, "summary": summary}
            return ToolResult(text, data=told)
        was_running = agents.find(args.to) is not None
        state = await agents.send(args.to, args.message, call_id=ctx.call_id)
        text = (
            f"Agent {state.agent_id} gets the message when its current calls are done."
            if was_running
            else f"Agent {state.agent_id} continues in the background; you get a notice when "
            f"it ends. Its output: {state.output_file}"
        )
        data: SendMessageData = {
            "agentId": state.agent_id,
            "resumed": not was_running,
            "summary": summary,
            "outputFile": state.output_file,
        }
        return ToolResult(text, data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        return f"SendMessage({partial_input.get('to', '...')})"
