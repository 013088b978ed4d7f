"""What `instructions.py` counts: one process for each case, so many calls of one kind."""

import asyncio
import cProfile
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

SCRIPT = """[[turn]]
text = "Looking."
call = [{ tool = "Read", input = { file_path = "a.txt" } }]

[[turn]]
text = "Done."
"""
_CLIENT = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}
_MCP = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": _CLIENT},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {
        "jsonrpc": "2.0",
        "id": 3,
        "method": "tools/call",
        "params": {"name": "Read", "arguments": {"file_path": "a.txt"}},
    },
]
STARTS = {
    "--version": (["--version"], ""),
    "call Read": (["call", "Read", "file_path=a.txt"], ""),
    "-p": (["-p", "go", "--model", "scripted:script.toml"], ""),
    "mcp": (["mcp"], "".join(json.dumps(line) + "\n" for line in _MCP)),
}
"""Arguments of the program, and what it reads."""
CALLS = ("empty", "at once", "nested", "Read", "Write", "Edit", "Grep", "Bash")
WARM_UP = 5


async def make_calls(case: str, calls: int, profile: cProfile.Profile | None) -> None:
    """So many calls in one session, after some that are not profiled."""
    from handaxe import Effects, Session, Tool, ToolArgs, ToolContext, ToolResult

    class NothingArgs(ToolArgs):
        pass

    class Nothing(Tool[NothingArgs]):
        """Does nothing."""

        search_hint = "nothing at all here"
        effects = Effects.pure()

        async def call(self, args: NothingArgs, ctx: ToolContext) -> ToolResult:
            return ToolResult("")

    class Around(Nothing):
        """Makes one empty call."""

        async def call(self, args: NothingArgs, ctx: ToolContext) -> ToolResult:
            return await ctx.call("Nothing")

    given = {"tools": [Nothing, Around]} if case in {"empty", "at once", "nested"} else {}
    async with Session(permission_mode="bypassPermissions", **given) as session:
        number = 0

        async def once() -> None:
            nonlocal number
            number += 1
            result = await session.call(*make_input(case, number))
            assert result.ok, result.text

        if case == "Edit":
            await session.call("Read", file_path="a.txt")
        for _ in range(WARM_UP):
            await once()
        if profile is not None:
            profile.enable()
        if case == "at once":
            await asyncio.gather(*(once() for _ in range(calls)))
        else:
            for _ in range(calls):
                await once()
        if profile is not None:
            profile.disable()


def make_input(case: str, number: int) -> tuple[str, dict[str, object]]:
    """The tool and the input of the call of this number."""
    match case:
        case "empty" | "at once" | "nested":
            return ("Around" if case == "nested" else "Nothing"), {}
        case "Read":
            return "Read", {"file_path": "a.txt"}
        case "Write":
            return "Write", {"file_path": f"new-{number}.txt", "content": "a line\n" * 1_400}
        case "Edit":
            change = {"old_string": f"version {number - 1}\n", "new_string": f"version {number}\n"}
            return "Edit", {"file_path": "a.txt", **change}
        case "Grep":
            return "Grep", {"pattern": "version", "path": "."}
        case _:
            return "Bash", {"command": "echo hello > out.txt"}


def prepare(root: Path) -> None:
    """The project that every case works in."""
    root.mkdir()
    (root / "a.txt").write_text("a line of ordinary length for a file\n" * 270 + "version 0\n")
    (root / "script.toml").write_text(SCRIPT)
    subprocess.run(["git", "init", "-q", str(root)], check=True)


def main() -> None:
    case, calls = sys.argv[1], int(sys.argv[2])
    profile = cProfile.Profile() if "--profile" in sys.argv else None
    asyncio.run(make_calls(case, calls, profile))
    if profile is not None:
        counts: Counter[str] = Counter()
        for found in profile.getstats():
            if not isinstance(found.code, str) and "/src/handaxe/" in found.code.co_filename:
                path = found.code.co_filename.partition("/src/")[2]
                counts[f"{path}:{found.code.co_name}"] += found.callcount / calls
        print(json.dumps(counts))


if __name__ == "__main__":
    main()
