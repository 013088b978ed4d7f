"""The functions and tools that guides only define are used here, each page in order as one program.

What guides do themselves runs in `test_guides`.
"""

import ast
import asyncio
import inspect
import io
import os
import re
import sys
from contextlib import redirect_stdout
from pathlib import Path
from textwrap import indent

import pytest

HOUSE = Path(__file__).parent.parent.parent
GUIDES = sorted((HOUSE / "docs" / "guides").glob("*.md"))
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_GIVEN = """
import asyncio
import pathlib
from collections.abc import AsyncIterator
from typing import Any
import handaxe
from handaxe import *
async def another(event): return None
session = Session(".")
"""
_HOSTING = """
replies = [
    [{"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "a", "content": "TODO"}},
     {"type": "tool_use", "id": "t2", "name": "count_todos", "input": {}}],
    [{"type": "text", "text": "Done."}],
]
async def ask(tools, messages):
    return {"content": replies.pop(0)}
async def main():
    tools = [count_todos, "Write", "Grep"]
    async with Session(".", permission_mode="acceptEdits", tools=tools, allow="count_todos") as session:
        messages = [{"role": "user", "content": "Go."}]
        await answer(session, messages)
        results = messages[2]["content"]
        assert [block["tool_use_id"] for block in results] == ["t1", "t2"], results
        assert not any(block.get("is_error") for block in results), results
        assert "1" in str(results[1]["content"]), results
        async def uses():
            for number in range(3):
                yield {"id": f"s{number}", "name": "Grep", "input": {"pattern": "TODO"}}
        turn = await stream_answer(session, uses())
        assert [block["tool_use_id"] for block in turn["content"]] == ["s0", "s1", "s2"]
        await undo_answer(session, "t1")
        assert not __import__("pathlib").Path("a").exists()
        assert "undo.unknown_call" in await undo_answer(session, "nothing")
asyncio.run(main())
"""
_MANY_USERS = """
import pathlib
tokens = {"ada": "token-of-ada"}
pathlib.Path("users/ada").mkdir(parents=True)
async def main():
    async with open_session("ada") as session:
        assert (await session.call("Glob", pattern="*")).ok
        assert (await session.call("Read", file_path="../x")).code == "permission.denied"
    await asyncio.to_thread(show)
asyncio.run(main())
"""
_TURNS = """
[[turn]]
call = [{ tool = "Write", id = "w1", input = { file_path = "new.txt", content = "new" } }]

[[turn]]
text = "Done."
"""
_SERVER = """
import json, sys
TOOL = {"name": "read_text_file", "description": "Read a file.", "annotations": {"readOnlyHint": True},
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string"}}}}
def answer(asked):
    method, params = asked["method"], asked.get("params", {})
    if method == "initialize":
        info = {"name": "files", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": [TOOL]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": open(params["arguments"]["path"]).read()}]}
    return {}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked)}), flush=True)
"""
_APPROVALS = {
    0: """
async with Session(".", on_ask=on_ask) as session:
    assert (await session.call("Write", file_path="old.txt", content="x")).ok
    assert (await session.call("Bash", command="touch x")).text.count("No commands here.")
""",
    2: """
await begin()
assert not pathlib.Path("new.txt").exists()
await go_on("w1")
assert pathlib.Path("new.txt").read_text() == "new"
""",
}
_LIBRARY = {
    0: "call_id = (await Session('path/to/project').call('Read', file_path='a.py')).id",
    3: """
async with Session(".", on_ask=on_ask) as session:
    assert (await session.call("Write", file_path="old.txt", content="x")).ok
    assert (await session.call("Bash", command="touch x")).text.count("Not today.")
""",
    4: """
options = {"hooks": {"PreToolUse": [before], "PostToolUse": [after]}, "permission_mode": "acceptEdits"}
async with Session(".", **options) as session:
    blocked = await session.call("Write", file_path="uv.lock", content="x")
    assert "package manager" in blocked.text, blocked
    assert "run the tests" in str((await session.call("Write", file_path="b", content="x")).messages)
""",
    5: """
await watch()
heard = printed.getvalue().split()
assert heard[0] == "session_started" and heard[-2:] == ["call_finished", "session_closed"], heard
""",
    6: """
async with handaxe.Agent("scripted:turns.toml", root=".", permission_mode="acceptEdits") as agent:
    await follow(agent)
assert pathlib.Path("new.txt").exists()
""",
}
_HOOKS = {
    0: """
async with Session(".", hooks={"PreToolUse": [guard]}, permission_mode="acceptEdits") as session:
    refused = await session.call("Write", file_path="uv.lock", content="x")
    assert "writes lock files" in refused.text, refused
    assert (await session.call("Write", file_path="free", content="x")).ok
""",
}
_OWN_TOOLS = {
    11: """
async def on_elicit(*asked):
    return {"stage": "test", "note": "now"}
own = [add, LineCount(), CountLines(), delete_order, count_orders, visit, plot, where_am_i, deploy]
options = {"provide": [Orders()], "on_elicit": on_elicit, "allow": [one.name for one in own]}
async with Session(".", tools=own, **options) as session:
    assert not session.warnings, session.warnings
    for name, given, expected in (
        ("add", {"a": 1, "b": 2}, "3"),
        ("LineCount", {"file_path": "three.txt"}, "3 lines"),
        ("CountLines", {"file_path": "three.txt"}, "3 lines"),
        ("delete_order", {"number": 7}, "deleted 7"),
        ("count_orders", {}, "42"),
        ("visit", {"page": "a"}, "1"),
        ("visit", {"page": "b"}, "2"),
        ("plot", {"name": "sales"}, "The chart sales."),
        ("where_am_i", {}, "0 messages"),
        ("deploy", {"version": "2.0"}, "2.0 is on test: now"),
    ):
        result = await session.call(name, given)
        assert result.ok and expected in result.text, (name, result)
assert NoSuchBranch("x").code == "git.no_branch"
import functools, json, os
(source, asking), (heard, sink) = os.pipe(), os.pipe()
serve_mcp = functools.partial(serve_mcp, source=source, sink=sink)
serving = asyncio.ensure_future(main())
client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
count = {"name": "count_orders", "arguments": {}}
for number, (method, params) in enumerate((("initialize", client), ("tools/call", count)), 1):
    asked = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    os.write(asking, json.dumps(asked).encode() + b"\\n")
    answer = await asyncio.to_thread(os.read, heard, 65_536)
# This client shows no questions.
assert b"permission.asked" in answer and b"count_orders" in answer, answer
os.close(asking)
await serving
test_my_tool_keeps_the_contract()
""",
}
_FRAMEWORKS = {
    0: """
assert {"Read", "Edit"} <= {one.name for one in tools}
await session.close()
"""
}
_MODELS = {0: "assert await ask('Hi', 'scripted:words.toml') == 'Done.'"}
_MCP_CLIENT = {
    0: "assert 'Read me.' in printed.getvalue() and 'files connected 1' in printed.getvalue()"
}
_COMMAND_LINE = {0: "assert 'Done.' in printed.getvalue(), printed.getvalue()"}
USES: dict[str, dict[int, str]] = {
    "approvals": _APPROVALS,
    "command-line-agent": _COMMAND_LINE,
    "frameworks": _FRAMEWORKS,
    "hooks": _HOOKS,
    "hosting": {3: _HOSTING},
    "library": _LIBRARY,
    "many-users": {1: _MANY_USERS},
    "mcp-client": _MCP_CLIENT,
    "models": _MODELS,
    "own-tools": _OWN_TOOLS,
}
"""What uses the names of a page, after its block of this number."""
ONLY = {"frameworks": (0,), "library": (3, 4, 5, 6), "models": (0,)}
"""The blocks that are used here; `test_guides` runs the others, `test_examples` those of frameworks."""


def list_blocks(guide: str) -> list[str]:
    return _BLOCK.findall((HOUSE / "docs" / "guides" / f"{guide}.md").read_text())


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_block_of_python_in_a_guide_is_python(guide: Path):
    for block in list_blocks(guide.stem):
        # Blocks show what stands in an async function.
        compile(f"async def block():\n{indent(block, '    ')}\n    pass\n", guide.name, "exec")


@pytest.mark.parametrize("guide", USES)
def test_what_a_guide_defines_does_what_it_says(guide: str, tmp_path, monkeypatch):
    project, programs = tmp_path / "work", tmp_path / "bin"
    for folder in (project / "path" / "to" / "project", programs):
        folder.mkdir(parents=True)
    for name, text in (
        ("turns.toml", _TURNS), ("words.toml", "[[turn]]\ntext = 'Done.'\n"),
        ("README.md", "Read me.\n"), ("three.txt", "1\n2\n3\n"), ("path/to/project/a.py", "x\n"),
    ):  # fmt: skip
        (project / name).write_text(text)
    # In place of the server from the network that the page names.
    (programs / "npx").write_text(f"#!{sys.executable}\n{_SERVER}")
    (programs / "npx").chmod(0o755)
    places = [str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(places))
    monkeypatch.setenv("HANDAXE_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    run_program(join_blocks(guide), guide)


def join_blocks(guide: str) -> str:
    blocks = list_blocks(guide)
    if guide == "many-users":
        blocks[1] = f"def show():\n{indent(blocks[1], '    ')}"
    parts = [_GIVEN]
    for number, block in enumerate(blocks):
        if number in ONLY.get(guide, range(len(blocks))):
            parts += [block, USES[guide].get(number, "")]
    source = "\n".join(parts).replace("openai/gpt-5", "scripted:words.toml")
    return source.replace("asyncio.run(main())", "await main()")


def run_program(source: str, name: str) -> None:
    code = compile(source, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    printed = io.StringIO()
    names: dict[str, object] = {"__name__": name, "printed": printed}

    async def run() -> None:
        made = eval(code, names)
        if inspect.isawaitable(made):
            await made

    with redirect_stdout(printed):
        asyncio.run(run())
