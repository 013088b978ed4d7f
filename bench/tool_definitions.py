"""How many characters the tool definitions of the first request take, tool by tool.

    uv run python bench/tool_definitions.py [ARGUMENTS OF handaxe]

Starts `handaxe -p` in an empty project against a model server on loopback, in turn with Anthropic's
wire and with OpenAI's, and prints what it sends: each definition as JSON, their sum, the system
prompt. A tool that waits until it is searched for is sent by its name in the system prompt.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile

from model_server import Json, ModelServer

MODELS = ("claude-x", "openai/gpt-x")


async def ask(model: str, words: list[str]) -> Json:
    """The first request of a run."""
    server = ModelServer([])
    address = await server.start()
    with tempfile.TemporaryDirectory() as root:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": root,
            "ANTHROPIC_BASE_URL": address,
            "ANTHROPIC_API_KEY": "k",
            "OPENAI_BASE_URL": f"{address}/v1",
            "OPENAI_API_KEY": "k",
        }
        program = [sys.executable, "-m", "handaxe", "-p", "go", "--model", model, *words]
        running = await asyncio.create_subprocess_exec(
            *program, cwd=root, env=environment, stdout=subprocess.DEVNULL
        )
        await running.wait()
    server.stop()
    return json.loads(server.requests[0].body)


def count(value: object) -> int:
    """The characters of a value as JSON."""
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


async def main() -> None:
    for model in MODELS:
        request = await ask(model, sys.argv[1:])
        sizes = {
            (tool.get("function") or tool).get("name", "?"): count(tool)
            for tool in request["tools"]
        }
        system = request.get("system") or request.get("instructions") or request.get("messages")
        print(f"{model}: {len(sizes)} tools, {sum(sizes.values()):,} characters")
        for name, size in sorted(sizes.items(), key=lambda item: -item[1]):
            print(f"  {size:>7,} {name}")
        print(f"  {count(system):>7,} characters of system prompt and messages")


if __name__ == "__main__":
    asyncio.run(main())
