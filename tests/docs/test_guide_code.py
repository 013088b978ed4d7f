"""The code of the guides for hosts runs, block by block, with the names that the text takes for granted."""

import re
from pathlib import Path
from textwrap import indent

import pytest

HOUSE = Path(__file__).parent.parent.parent
GUIDES = sorted((HOUSE / "docs" / "guides").glob("*.md"))
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_GIVEN = """
import asyncio
from collections.abc import AsyncIterator
from typing import Any
import handaxe
from handaxe import Effects, Session, ToolCall, ToolContext, ToolResult, tool
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
USES = {"hosting": _HOSTING, "many-users": _MANY_USERS}


def list_blocks(guide: str) -> list[str]:
    return _BLOCK.findall((HOUSE / "docs" / "guides" / f"{guide}.md").read_text())


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_every_block_of_python_in_a_guide_is_python(guide: Path):
    for block in list_blocks(guide.stem):
        # Blocks show what stands in an async function.
        compile(f"async def block():\n{indent(block, '    ')}\n    pass\n", guide.name, "exec")


@pytest.mark.parametrize("guide", USES)
def test_the_blocks_of_a_guide_for_hosts_do_what_it_says(guide: str, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = list_blocks(guide)
    if guide == "many-users":
        blocks[1] = f"def show():\n{indent(blocks[1], '    ')}"
    names: dict[str, object] = {"__name__": guide}
    exec("\n".join([_GIVEN, *blocks, USES[guide]]), names)


def test_the_async_listener_of_the_guide_hears_the_events(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (block,) = [one for one in list_blocks("library") if "session.subscribe(send)" in one]
    exec("\n".join([_GIVEN, block, "asyncio.run(watch())"]), {"__name__": "listener"})
    heard = capsys.readouterr().out.split()
    assert heard[0] == "session_started"
    assert heard[-2:] == ["call_finished", "session_closed"]
