"""The Messages API with its own search for tools: it refuses what the real one refuses."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from tests.models.serving import Reply, error, named

Json = dict[str, Any]
Content = list[Json]
Answer = Reply | Content | Callable[[Json], Content]

SEARCHES = {"tool_search_tool_bm25_20251119": "tool_search_tool_bm25"}
TOOL_FIELDS = {
    "name", "description", "input_schema", "cache_control", "defer_loading", "strict",
    "input_examples", "type",
}  # fmt: skip


def find_refusal(body: Json) -> str | None:
    """What the API says against a request."""
    return next(iter([*_refuse_tools(body.get("tools", [])), *_refuse_messages(body)]), None)


def _refuse_tools(tools: list[Json]) -> Iterator[str]:
    deferred = [tool for tool in tools if tool.get("defer_loading")]
    if tools and len(deferred) == len(tools):
        yield "At least one tool must have defer_loading=false. All tools cannot be deferred."
    has_search = any(tool.get("type") in SEARCHES for tool in tools)
    if deferred and not has_search:
        yield "Deferred tools, and no tool to find them."
    names = [tool["name"] for tool in tools]
    if len(names) != len(set(names)):
        yield "tools: Tool names must be unique."
    for tool in tools:
        if tool.keys() - TOOL_FIELDS:
            yield f"tools: Extra inputs are not permitted: {tool.keys() - TOOL_FIELDS}"
        if tool.get("defer_loading") and "cache_control" in tool:
            yield f"Tool '{tool['name']}' cannot have both defer_loading=true and cache_control set."
        if has_search and "input_examples" in tool:
            yield "input_examples are not compatible with tool search."
        if "type" in tool and SEARCHES.get(tool["type"]) != tool["name"]:
            yield f"tools: {tool['type']} is not known."


def _refuse_messages(body: Json) -> Iterator[str]:
    tools = body.get("tools", [])
    names = {tool["name"] for tool in tools if "type" not in tool}
    has_search = any("type" in tool for tool in tools)
    waiting: set[str] = set()
    roles = [message["role"] for message in body["messages"]]
    if roles[::2] != ["user"] * len(roles[::2]) or roles[1::2] != ["assistant"] * len(roles[1::2]):
        yield f"messages: roles must alternate: {roles}"
    for message in body["messages"]:
        content = message["content"]
        answered = {block.get("tool_use_id") for block in content}
        if not waiting <= answered:
            yield "`tool_use` ids were found without `tool_result` blocks immediately after."
        waiting = {block["id"] for block in content if block["type"] == "tool_use"}
        yield from _refuse_content(content, answered, names, has_search=has_search)


def _refuse_content(
    content: Content, answered: set[Any], names: set[str], *, has_search: bool
) -> Iterator[str]:
    searched: set[str] = set()
    for block in content:
        match block["type"]:
            case "server_tool_use":
                searched.add(block["id"])
                if not has_search:
                    yield "server_tool_use without its tool."
                if block["id"] not in answered:
                    yield "server_tool_use without a corresponding result."
            case "tool_search_tool_result":
                if block["tool_use_id"] not in searched:
                    yield "tool_search_tool_result without a corresponding server_tool_use."
                listed = block["content"].get("tool_references", [])
                for name in {reference["tool_name"] for reference in listed} - names:
                    yield f"Tool reference '{name}' not found in available tools"
            case "text" | "tool_use" | "tool_result" | "thinking":
                pass
            case kind:
                yield f"messages: {kind} is not known."


def search(number: int, *found: str) -> Content:
    """A search of the vendor's and its result."""
    call_id = f"srvtoolu_{number}"
    references = [{"type": "tool_reference", "tool_name": name} for name in found]
    content = {"type": "tool_search_tool_search_result", "tool_references": references}
    return [
        {"type": "server_tool_use", "id": call_id, "name": "tool_search_tool_bm25",
         "input": {"query": " ".join(found)}, "caller": {"type": "direct"}},
        {"type": "tool_search_tool_result", "tool_use_id": call_id, "content": content},
    ]  # fmt: skip


def use(call_id: str, name: str, **given: Any) -> Json:
    """A call."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given}


def say(text: str) -> Json:
    """Words."""
    return {"type": "text", "text": text}


def stream(content: Content, *, is_cut: bool = False) -> Reply:
    """Blocks as the API streams them: inputs in pieces after the start of their block."""
    events: Content = [{"type": "message_start", "message": {"content": [], "model": "claude"}}]
    for index, block in enumerate(content):
        start, deltas = block, []
        if block["type"] in ("tool_use", "server_tool_use"):
            text = json.dumps(block["input"])
            start = {**block, "input": {}}
            pieces = (text[:3], text[3:])
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        elif block["type"] == "text":
            start, deltas = say(""), [{"type": "text_delta", "text": block["text"]}]
        events.append({"type": "content_block_start", "index": index, "content_block": start})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    if is_cut:
        return Reply(pieces=(named(*events),), cut=True)
    reason = "tool_use" if content[-1]["type"] == "tool_use" else "end_turn"
    events.append({"type": "message_delta", "delta": {"stop_reason": reason}})
    return Reply(pieces=(named(*events, {"type": "message_stop"}),))


class SearchingReplies:
    """In place of a server's list of replies: answers in order, unless the request is refused."""

    def __init__(self, server: Any, *answers: Answer) -> None:
        self._server = server
        self._answers = [*answers]
        self.refusals: list[str] = []
        self.models: list[Any] = []
        """Who speaks with the server, and lets go of it at the end."""

    def __len__(self) -> int:
        return 1_000

    def __getitem__(self, at: int) -> Reply:
        body = self._server.asked[-1].body
        refusal = find_refusal(body)
        if refusal is not None:
            self.refusals.append(refusal)
            failure = {"type": "invalid_request_error", "message": refusal}
            return error(400, {"type": "error", "error": failure})
        answer = self._answers.pop(0)
        if isinstance(answer, Reply):
            return answer
        return stream(answer(body) if callable(answer) else answer)
