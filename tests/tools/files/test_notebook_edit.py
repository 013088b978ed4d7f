"""NotebookEdit: one cell of a notebook, all else byte for byte."""

import json
import random
from pathlib import Path

import nbformat
import pytest

from handaxe import Deny, Session


@pytest.fixture
async def opened(session, project: Path, notebook):
    """A session that has read a notebook of three cells."""
    stream = {"output_type": "stream", "name": "stdout", "text": ["out\n"]}
    cells = [
        notebook.markdown("# Title", "top"),
        notebook.code("x = 1\ny = 2", "calc", [stream]),
        notebook.markdown("end", "end"),
    ]
    (project / "a.ipynb").write_text(notebook.text(*cells))
    assert (await session.call("Read", file_path="a.ipynb")).ok
    return session


def edit(session, **more):
    return session.call("NotebookEdit", {"notebook_path": "a.ipynb", "new_source": "", **more})


async def test_a_replaced_cell_changes_its_own_lines_only(opened, project: Path):
    before = (project / "a.ipynb").read_text()
    result = await edit(opened, cell_id="calc", new_source="z = 3\n")
    after = (project / "a.ipynb").read_text()
    nbformat.validate(json.loads(after))
    assert after == before.replace('    "x = 1\\n",\n    "y = 2"\n', '    "z = 3\\n"\n').replace(
        '"execution_count": 1', '"execution_count": null'
    ).replace(
        before[before.index('"outputs": [') : before.index('   "source": [')], '"outputs": [],\n'
    )
    patch = result.data.pop("structuredPatch")
    assert patch
    assert result.data == {
        "new_source": "z = 3\n",
        "old_source": "x = 1\ny = 2",
        "cell_id": "calc",
        "cell_type": "code",
        "language": "python",
        "edit_mode": "replace",
        "notebook_path": str(project / "a.ipynb"),
        "original_file": before,
        "updated_file": after,
    }
    assert "outputs were cleared" in result.text


async def test_whoever_is_asked_sees_the_lines_that_would_change(project: Path, notebook):
    (project / "a.ipynb").write_text(notebook.text(notebook.code("x = 1", "calc")))
    asked = []

    async def on_ask(request):
        asked.append(request)
        return Deny()

    async with Session(project, on_ask=on_ask) as session:
        await session.call("Read", file_path="a.ipynb")
        await edit(session, cell_id="calc", new_source="x = 2")
        await edit(session, cell_id="calc", edit_mode="delete")
    lines = [
        [line for hunk in request.preview[0].hunks for line in hunk.lines] for request in asked
    ]
    assert '+    "x = 2"' in lines[0]
    assert '-    "x = 1"' in lines[1]


async def test_edits_follow_one_another_without_another_read(opened, project: Path):
    assert (await edit(opened, cell_id="top", new_source="# New")).ok
    inserted = await edit(
        opened, cell_id="top", edit_mode="insert", cell_type="code", new_source="a"
    )
    assert inserted.ok
    assert (await edit(opened, cell_id=inserted.data["cell_id"], new_source="b")).ok
    assert (await edit(opened, cell_id="cell-3", edit_mode="delete")).ok
    content = json.loads((project / "a.ipynb").read_text())
    nbformat.validate(content)
    assert [cell["source"] for cell in content["cells"]] == [
        "# New",
        ["b"],
        ["x = 1\n", "y = 2"],
    ]


async def test_without_a_cell_the_new_one_comes_first(opened, project: Path):
    result = await edit(opened, edit_mode="insert", cell_type="markdown", new_source="intro")
    assert json.loads((project / "a.ipynb").read_text())["cells"][0]["source"] == "intro"
    assert result.data["old_source"] is None


async def test_another_type_of_cell_still_validates(opened, project: Path):
    await edit(opened, cell_id="calc", new_source="words", cell_type="markdown")
    await edit(opened, cell_id="top", new_source="1 + 1", cell_type="code")
    content = json.loads((project / "a.ipynb").read_text())
    nbformat.validate(content)
    assert [cell["cell_type"] for cell in content["cells"]] == ["code", "markdown", "markdown"]


async def test_an_unknown_cell_names_the_nearest(opened, project: Path):
    before = (project / "a.ipynb").read_bytes()
    near = await edit(opened, cell_id="calk", new_source="z")
    assert near.code == "notebook.no_cell"
    assert "Cells: calc." in near.text
    far = await edit(opened, cell_id="cell-3", new_source="z")
    assert far.code == "notebook.no_cell"
    assert "has 3 cells" in far.text
    none = await edit(opened, new_source="z")
    assert none.code == "notebook.no_cell"
    assert "`cell_id` is required to replace a cell" in none.text
    assert (project / "a.ipynb").read_bytes() == before


async def test_an_insert_without_a_type_is_bad_input(opened):
    result = await edit(opened, edit_mode="insert", new_source="z")
    assert result.code == "call.bad_input"
    assert "cell_type" in result.text


async def test_the_source_it_has_already_is_no_change(opened):
    result = await edit(opened, cell_id="top", new_source="# Title")
    assert result.code == "edit.no_change"


async def test_half_a_character_cannot_be_stored(opened, project: Path):
    before = (project / "a.ipynb").read_bytes()
    result = await edit(opened, cell_id="top", new_source="\ud83d")
    assert result.code == "call.bad_input"
    assert (project / "a.ipynb").read_bytes() == before


async def test_unread_and_changed_notebooks_are_refused(session, project: Path, notebook):
    (project / "a.ipynb").write_text(notebook.text(notebook.markdown("a", "a")))
    assert (await edit(session, cell_id="a", new_source="b")).code == "file.not_read"
    await session.call("Read", file_path="a.ipynb")
    (project / "a.ipynb").write_text(notebook.text(notebook.markdown("other", "a")))
    changed = await edit(session, cell_id="a", new_source="b")
    assert changed.code == "file.changed"
    assert "other" in changed.text


async def test_a_part_of_the_notebook_seen_is_enough(session, project: Path, notebook):
    cells = [notebook.markdown(f"cell {n}", f"c{n}") for n in range(9)]
    (project / "a.ipynb").write_text(notebook.text(*cells))
    await session.call("Read", file_path="a.ipynb", limit=2)
    assert (await edit(session, cell_id="c7", new_source="b")).ok


@pytest.mark.parametrize(
    "content",
    [
        "words",
        "{}",
        '{"cells": [], "metadata": {}, "nbformat": 3, "nbformat_minor": 0}',
        '{"cells": [{}], "metadata": {}, "nbformat": 4, "nbformat_minor": 0}',
        (
            '{"cells": [{"cell_type": "code", "metadata": {}, "source": ""}], "metadata": {}, '
            '"nbformat": 4, "nbformat_minor": 0}'
        ),
        '{"cells": [], "metadata": {"a": tru}, "nbformat": 4, "nbformat_minor": 0}',
    ],
)
async def test_what_is_no_valid_notebook_is_refused_and_stays(session, project: Path, content: str):
    (project / "a.ipynb").write_text(content)
    await session.call("Read", file_path="a.ipynb")
    result = await edit(session, edit_mode="insert", cell_type="code", new_source="x")
    assert result.code == "notebook.invalid"
    assert "Nothing was changed" in result.text
    assert (project / "a.ipynb").read_text() == content


async def test_a_missing_notebook_names_near_ones(opened):
    result = await opened.call("NotebookEdit", notebook_path="b.ipynb", new_source="", cell_id="x")
    assert result.code == "file.not_found"
    assert "a.ipynb" in result.text


async def test_rules_for_edit_govern_notebooks(project: Path, notebook):
    (project / "a.ipynb").write_text(notebook.text(notebook.markdown("a", "a")))
    async with Session(project, permission_mode="acceptEdits", deny=["Edit(*.ipynb)"]) as session:
        await session.call("Read", file_path="a.ipynb")
        assert (await edit(session, cell_id="a", new_source="b")).code == "permission.denied"
    async with Session(project, permission_mode="default") as session:
        await session.call("Read", file_path="a.ipynb")
        assert (await edit(session, cell_id="a", new_source="b")).code == "permission.asked"


async def test_a_notebook_with_windows_line_breaks_keeps_them(session, project: Path, notebook):
    text = notebook.text(notebook.markdown("a", "a"), notebook.code("b", "b"))
    (project / "a.ipynb").write_bytes(text.replace("\n", "\r\n").encode())
    await session.call("Read", file_path="a.ipynb")
    await edit(session, cell_id="a", edit_mode="insert", cell_type="code", new_source="x\ny")
    await edit(session, cell_id="b", new_source="x\ny")
    content = (project / "a.ipynb").read_bytes()
    assert content.count(b"\n") == content.count(b"\r\n")
    assert len(json.loads(content)["cells"]) == 3


async def test_any_row_of_edits_leaves_a_valid_notebook(opened, project: Path):
    chance = random.Random(11)
    for turn in range(60):
        count = len(json.loads((project / "a.ipynb").read_text())["cells"])
        request = {
            "edit_mode": chance.choice(["replace", "insert", "insert", "delete"]),
            "new_source": chance.choice(["", "x", "é\n\n", 'a "quoted" \\ line\n', f"turn {turn}"]),
            "cell_type": chance.choice([None, "code", "markdown"]),
            "cell_id": chance.choice([None, f"cell-{chance.randrange(count + 1)}", "top", "calc"]),
        }
        before = (project / "a.ipynb").read_bytes()
        result = await edit(opened, **request)
        after = (project / "a.ipynb").read_bytes()
        assert result.ok == (after != before)
        assert result.code in {None, "call.bad_input", "notebook.no_cell", "edit.no_change"}
        nbformat.validate(json.loads(after))
        assert after.startswith(b'{\n "cells": [') and after.endswith(b"}\n")  # noqa: PT018


async def test_mode_and_links_are_kept(opened, project: Path):
    (project / "a.ipynb").chmod(0o640)
    (project / "link.ipynb").symlink_to("a.ipynb")
    result = await opened.call(
        "NotebookEdit", notebook_path="link.ipynb", cell_id="top", new_source="via link"
    )
    assert result.ok, result.text
    assert (project / "link.ipynb").is_symlink()
    assert (project / "a.ipynb").stat().st_mode & 0o777 == 0o640
    assert "via link" in (project / "a.ipynb").read_text()
