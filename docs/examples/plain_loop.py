"""A model's loop without a framework: ask, run the calls of the answer, send the results back.

`ask` plays a model from a list. A real one gets the same tools and messages and answers in the
same shape.
"""

import asyncio
from collections.abc import Iterator
from typing import Any

from handaxe import Session, ToolCall

Block = dict[str, Any]


def use(id: str, name: str, **input: str) -> Block:
    return {"type": "tool_use", "id": id, "name": name, "input": input}


SCRIPT: list[list[Block]] = [
    [use("toolu_1", "Write", file_path="a.py", content="x = 1\n")],
    [
        use("toolu_2", "Edit", file_path="a.py", old_string="x = 1", new_string="x = 2"),
        use("toolu_3", "Read", file_path="/etc/hosts"),
    ],
    [{"type": "text", "text": "x is 2 now. I may not read outside the project."}],
]


async def ask(script: Iterator[list[Block]], tools: list[Block], messages: list[Block]) -> Block:
    print(f"{len(messages)} messages, {len(tools)} tools")
    content = next(script)
    is_done = content[-1]["type"] == "text"
    return {"content": content, "stop_reason": "end_turn" if is_done else "tool_use"}


async def main() -> None:
    script = iter(SCRIPT)
    messages: list[Block] = [{"role": "user", "content": "Set x to 2 in a.py."}]
    async with Session(".", permission_mode="acceptEdits") as session:
        while True:
            answer = await ask(script, session.tools("anthropic"), messages)
            messages.append({"role": "assistant", "content": answer["content"]})
            if answer["stop_reason"] != "tool_use":
                break
            blocks = [block for block in answer["content"] if block["type"] == "tool_use"]
            calls = [ToolCall(block["id"], block["name"], block["input"]) for block in blocks]
            results = await session.run_many(calls)
            messages.append(session.user_turn(results, "anthropic"))
    for block in messages[-2]["content"]:
        print(block["tool_use_id"], "failed" if block.get("is_error") else "worked")
    print(messages[-1]["content"][-1]["text"])


asyncio.run(main())
