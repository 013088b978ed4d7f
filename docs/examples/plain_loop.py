"""A model's loop without a framework, which sends what `Agent` sends; here a list answers."""

import asyncio
from typing import Any

from handaxe import Session, ToolCall

WRITE = {"file_path": "a.py", "content": "x = 1\n"}
ANSWERS: list[dict[str, Any]] = [
    {"type": "tool_use", "id": "toolu_1", "name": "Write", "input": WRITE},
    {"type": "tool_use", "id": "toolu_2", "name": "Read", "input": {"file_path": "/etc/hosts"}},
    {"type": "text", "text": "x is 1 now."},
]


async def main() -> None:
    messages: list[Any] = [{"role": "user", "content": "Set x to 1."}]
    async with Session(".", permission_mode="acceptEdits") as session:
        for answer in ANSWERS:  # a model would get session.tools("anthropic") and the messages
            messages.append({"role": "assistant", "content": [answer]})
            if answer["type"] == "tool_use":
                call = ToolCall(answer["id"], answer["name"], answer["input"])
                messages.append(session.user_turn([await session.run(call)], "anthropic"))
                for block in messages[-1]["content"]:
                    print(block["tool_use_id"], "failed" if block.get("is_error") else "worked")
    print(ANSWERS[-1]["text"])


asyncio.run(main())
