"""Names that no plain text can show go from one tool to the next as searches show them."""

import asyncio
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handaxe import Session

NOTEBOOK = (
    '{"cells":[{"cell_type":"code","id":"c1","source":"old","metadata":{},"outputs":[],'
    '"execution_count":null}],"metadata":{},"nbformat":4,"nbformat_minor":5}'
)
IN_MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None
PARTS = [b"a", b"'", b"\\", b"\\n", b"$'", b"~", b"\n", b"\t", b"\x1b[31m", b"\x7f", b"\xff",
         b"\xe9", b"\xc2\x85", b"\xe2\x80\xa8", b"\xc3\xa9", b"-", b":1:"]  # fmt: skip
names = st.lists(st.sampled_from(PARTS), min_size=1, max_size=6).map(b"".join).map(os.fsdecode)


async def told(session: Session, tool: str, **call_input: object) -> str:
    result = await session.call(tool, call_input)
    assert result.ok, (tool, call_input, result.text)
    result.text.encode()
    return result.text


async def go_round(project: Path, directory: str, name: str) -> None:
    """Find a file by both searches, then hand what they show to every tool for files."""
    (project / directory).mkdir()
    text, notebook = (project / directory / f"{name}.{end}" for end in ("txt", "ipynb"))
    text.write_text("one\n")
    notebook.write_text(NOTEBOOK)
    async with Session(project, permission_mode="acceptEdits") as session:
        shown = await told(session, "Glob", pattern="**/*.txt")
        assert shown == await told(session, "Grep", pattern="^one$")
        assert shown.splitlines() == [shown]
        found = await session.call("Glob", {"pattern": "**/*.txt"})
        for path in (shown, *found.data["filenames"]):
            assert (await told(session, "Read", file_path=path)).endswith("→one")
            assert "1" in await told(session, "Grep", pattern="one", path=path, output_mode="count")
        await told(session, "Edit", file_path=shown, old_string="one", new_string="two")
        edits = [{"old_string": "two", "new_string": "three"}]
        await told(session, "MultiEdit", file_path=shown, edits=edits)
        patch = f"*** Begin Patch\n*** Update File: {shown}\n@@\n-three\n+four\n*** End Patch\n"
        assert text.read_text() == "three\n"
        await told(session, "ApplyPatch", input=patch)
        assert text.read_text() == "four\n"
        await told(session, "Write", file_path=shown, content="five\n")
        assert text.read_text() == "five\n"
        book = await told(session, "Glob", pattern="**/*.ipynb")
        await told(session, "Read", file_path=book)
        await told(session, "NotebookEdit", notebook_path=book, cell_id="c1", new_source="new")
        assert '"new"' in notebook.read_text()
        for before in ("five\n", "four\n", "three\n", "two\n", "one\n"):
            undone = await told(session, "Undo")
            path = undone.splitlines()[1].partition(": ")[2].partition(" (+")[0]
            assert len(undone.splitlines()) == 2
            assert text.read_text() == before
            await told(session, "Read", file_path=path)
    assert notebook.read_text() == NOTEBOOK


@settings(max_examples=4, derandomize=True)
@example(os.fsdecode(b"caf\xe9"), "two\nlines")
@example("$'two\\nlines'", "$'two\\nlines'")
@given(names, names)
def test_what_searches_show_can_be_given_to_every_tool(directory: str, name: str):
    with tempfile.TemporaryDirectory(dir=IN_MEMORY) as place:
        project = Path(os.path.realpath(place))
        asyncio.run(go_round(project, directory, name))


@pytest.mark.parametrize(
    ("raw", "literal"), [(b"two\nlines", "two\\nlines"), (b"bad\xff", "bad\\xff")]
)
async def test_a_name_with_backslashes_is_not_mistaken_for_an_odd_one(
    session: Session, project: Path, raw: bytes, literal: str
):
    (project / os.fsdecode(raw)).write_text("odd")
    (project / literal).write_text("plain")
    shown = sorted((await told(session, "Glob", pattern="*")).splitlines())
    assert shown == sorted([f"$'{literal}'", literal])
    assert "odd" in await told(session, "Read", file_path=f"$'{literal}'")
    assert "plain" in await told(session, "Read", file_path=literal)


async def test_quotes_are_no_way_around_a_rule(project: Path):
    (project / "key\n.pem").write_text("SECRET")
    async with Session(project, settings={"permissions": {"deny": ["Read(*.pem)"]}}) as session:
        for path in ("$'key\\n.pem'", "$'key\\x0a.pem'", f"$'{project}/./key\\n.pem'"):
            result = await session.call("Read", {"file_path": path})
            assert result.code == "permission.denied", path
