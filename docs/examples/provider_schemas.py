"""Tool schemas as a model provider wants them, and a model's answer as a call."""

import asyncio
import json

from handaxe import Session, ToolCall

A_TOOL_USE_BLOCK = {"id": "toolu_1", "name": "Read", "input": {"file_path": "missing.txt"}}


async def main() -> None:
    async with Session(".", tools="read-only") as session:
        for provider in ("anthropic", "openai", "gemini", "json-schema"):
            schema = session.tools(provider)[0]
            print(f"{provider}: {json.dumps(schema)[:60]}...")
        block = A_TOOL_USE_BLOCK
        result = await session.run(ToolCall(str(block["id"]), str(block["name"]), block["input"]))
        print(json.dumps(session.tool_result(result, "anthropic")))


asyncio.run(main())
