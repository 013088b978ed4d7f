"""Agent: delegate a task to a subagent with its own tools."""

from typing import Annotated, Any, Literal, TypedDict, cast

import msgspec

from handaxe.config.settings import AgentOptions, Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.effects import Effects
from handaxe.contract.faults.agent import AgentFailed
from handaxe.contract.permission_subjects import Subject, TextSubject
from handaxe.contract.ports.agents import (
    AgentOutcome,
    AgentRequest,
    Agents,
    AgentState,
    describe_worktree,
)
from handaxe.contract.result import ToolResult
from handaxe.contract.tool import Tool, ToolArgs
from handaxe.text.escape import format_count

DEFAULT_KIND = "general-purpose"


class AgentArgs(ToolArgs, kw_only=True):
    description: Annotated[str, msgspec.Meta(min_length=1), "A short description (3-5 words)."]
    prompt: Annotated[
        str,
        msgspec.Meta(min_length=1),
        "The whole task.",
    ]
    subagent_type: Annotated[str | None, "Agent type; default `general-purpose`."] = None
    model: Annotated[str | None, "Model to use instead of this agent's."] = None
    run_in_background: Annotated[bool | None, "Do not wait for it."] = None
    name: Annotated[
        Annotated[str, msgspec.Meta(min_length=1, max_length=60)] | None,
        "A name to send messages to.",
    ] = None
    isolation: Annotated[
        Literal["worktree", "remote"] | None,
        "`worktree`: a separate checkout. Its changes stay there; the result gives its path.",
    ] = None
    team_name: Annotated[str | None, "Accepted but not used."] = None
    mode: Annotated[str | None, "Accepted but not used; the agent has your permissions."] = None


class WorktreeData(TypedDict, total=False):
    """The checkout that an isolated agent works in."""

    worktreePath: str
    worktreeBranch: str


class AgentTextData(TypedDict):
    """A text block of an agent's answer."""

    type: Literal["text"]
    text: str


class AgentUsageData(TypedDict):
    """Tokens that an agent used."""

    input_tokens: int
    cache_creation_input_tokens: int
    cache_read_input_tokens: int
    output_tokens: int


class CompletedAgentData(WorktreeData):
    """A finished agent."""

    status: Literal["completed"]
    agentId: str
    agentType: str
    content: Annotated[list[AgentTextData], "Its final answer."]
    resolvedModel: str
    modelsUsed: list[str]
    totalToolUseCount: int
    totalDurationMs: float
    totalTokens: int
    usage: AgentUsageData
    toolStats: Annotated[dict[str, int], "Number of calls per tool."]
    prompt: str
    outputFile: str


class LaunchedAgentData(WorktreeData):
    """An agent that continues in the background."""

    status: Literal["async_launched"]
    isAsync: bool
    agentId: str
    description: str
    resolvedModel: str
    prompt: str
    outputFile: Annotated[str, "Its output so far."]
    canReadOutputFile: bool


class Agent(Tool[AgentArgs]):
    """A subagent with its own conversation."""

    aliases = ("Task",)
    search_hint = "delegate a task to a sub-agent"
    output_type = CompletedAgentData | LaunchedAgentData
    uses = (Agents, Settings)
    # What the agent does is ordered, asked for and remembered call by call, as its own.
    effects = Effects.pure()
    # The agent's own words are bounded by a setting.
    max_result_chars = 200_000
    usual_chars = AgentOptions().max_output_chars
    input_examples = (
        {
            "description": "Find the parser",
            "prompt": "Where is the configuration parsed? Name files and lines.",
            "subagent_type": "Explore",
        },
    )

    def subjects(self, args: AgentArgs) -> tuple[Subject, ...]:
        return (TextSubject(args.subagent_type or DEFAULT_KIND),)

    async def call(self, args: AgentArgs, ctx: ToolContext) -> ToolResult:
        outcome = await ctx[Agents].start(
            AgentRequest(
                description=args.description,
                prompt=args.prompt,
                kind=args.subagent_type,
                model=args.model,
                name=args.name,
                in_background=args.run_in_background,
                call_id=ctx.call_id,
                isolation=args.isolation,
            ),
            ctx.report,
        )
        if outcome.in_background:
            return ToolResult(_format_launched(outcome), data=_to_launched_data(outcome, args))
        most = ctx[Settings].agents.max_output_chars
        text = _cut(outcome.text, outcome.state.output_file, most)
        if outcome.errors:
            wrong = "; ".join(outcome.errors)
            more = "" if text == wrong else f"\n\n{text}"
            text = f"The agent ended with an error: {wrong}{more}"
        data, text = (
            _to_completed_data(outcome, args, text),
            f"{text}\n\n{_format_trailer(outcome)}",
        )
        if outcome.has_failed:
            raise AgentFailed(text, data={**data, "status": "failed"})
        return ToolResult(text, data=data)

    def title(self, partial_input: dict[str, Any]) -> str:
        kind = partial_input.get("subagent_type") or DEFAULT_KIND
        return f"Agent({kind}: {partial_input.get('description', '...')})"


def _cut(text: str, file: str, limit_chars: int) -> str:
    text = text.strip() or "(The agent ended without an answer.)"
    if len(text) <= limit_chars:
        return text
    return f"{text[:limit_chars]}\n... ({len(text):,} characters; the rest is in {file})"


def _format_trailer(outcome: AgentOutcome) -> str:
    state = outcome.state
    return (
        f"{describe_worktree(state)}agentId: {state.agent_id} (use SendMessage with this "
        f"id to continue)\nused: {format_count(outcome.tool_uses, 'tool call')}, "
        f"{format_count(_count_tokens(outcome), 'token')}"
    )


def _format_launched(outcome: AgentOutcome) -> str:
    why = "It took too long to wait for" if outcome.why_background == "timeout" else "As requested"
    state = outcome.state
    return (
        f"{why}: the agent works in the background as {state.agent_id}. You get a notice "
        "when it ends; do something else until then. Its output so far: "
        f"{state.output_file}"
    )


def _count_tokens(outcome: AgentOutcome) -> int:
    usage = outcome.usage
    return (
        usage.input_tokens
        + usage.output_tokens
        + usage.cache_read_tokens
        + usage.cache_write_tokens
    )


def _to_completed_data(outcome: AgentOutcome, args: AgentArgs, text: str) -> CompletedAgentData:
    state = outcome.state
    return {
        "status": "completed",
        "agentId": state.agent_id,
        "agentType": state.agent_type,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": state.model,
        "modelsUsed": list(outcome.models),
        "totalToolUseCount": outcome.tool_uses,
        "totalDurationMs": outcome.duration_ms,
        "totalTokens": _count_tokens(outcome),
        "usage": cast("AgentUsageData", outcome.usage.to_api_fields()),
        "toolStats": outcome.tool_counts,
        "prompt": args.prompt,
        "outputFile": state.output_file,
        **_to_worktree_data(state),
    }


def _to_worktree_data(state: AgentState) -> WorktreeData:
    if not state.worktree_path:
        return {}
    if not state.worktree_branch:
        return {"worktreePath": state.worktree_path}
    return {"worktreePath": state.worktree_path, "worktreeBranch": state.worktree_branch}


def _to_launched_data(outcome: AgentOutcome, args: AgentArgs) -> LaunchedAgentData:
    state = outcome.state
    return {
        "status": "async_launched",
        "isAsync": True,
        "agentId": state.agent_id,
        "description": args.description,
        "resolvedModel": state.model,
        "prompt": args.prompt,
        "outputFile": state.output_file,
        "canReadOutputFile": True,
        **_to_worktree_data(state),
    }
