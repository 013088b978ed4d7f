"""Read: notebooks by cells."""

import base64
import io
import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image
from tests.counted_work import grows_in_proportion

from handaxe.text.notebook.cell_outputs import read_outputs
from handaxe.text.notebook.document import read_notebook


def picture(size: tuple[int, int] = (20, 10)) -> str:
    buffer = io.BytesIO()
    Image.new("RGB", size, "red").save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def stream(text: str, name: str = "stdout") -> dict:
    return {"output_type": "stream", "name": name, "text": text.splitlines(keepends=True)}


def result_of(**forms) -> dict:
    data = {name.replace("_", "/"): value for name, value in forms.items()}
    return {"output_type": "execute_result", "execution_count": 1, "metadata": {}, "data": data}


async def test_cells_come_with_ids_types_sources_and_outputs(session, project: Path, notebook):
    trace = ["\x1b[0;31mZeroDivisionError\x1b[0m", "division by zero"]
    error = {"output_type": "error", "ename": "E", "evalue": "v", "traceback": trace}
    cells = [
        notebook.markdown("# Title", "top"),
        notebook.code("print(1)\n1/0", "calc", [stream("10%\r100%\ndone\n"), error]),
        notebook.code("x", "show", [result_of(text_plain="<obj>", text_html="<b>obj</b>")]),
    ]
    (project / "a.ipynb").write_text(notebook.text(*cells))
    result = await session.call("Read", file_path="a.ipynb")
    size = (project / "a.ipynb").stat().st_size
    assert result.text == (
        f"{project}/a.ipynb: notebook of 3 cells (python, format 4.5), {size:,} bytes.\n\n"
        "--- cell-0: id top, markdown ---\n# Title\n\n"
        "--- cell-1: id calc, code, run 1 ---\nprint(1)\n1/0\n"
        "[output 1: stdout]\n100%\ndone\n"
        "[output 2: error]\nZeroDivisionError\ndivision by zero\n\n"
        "--- cell-2: id show, code, run 1 ---\nx\n"
        "[output 1: result; also as text/html]\n<obj>"
    )
    assert result.data["type"] == "notebook"
    assert result.data["file"]["totalCells"] == 3
    assert result.data["file"]["cells"][0] == {
        "index": 0,
        "cell_id": "top",
        "cell_type": "markdown",
        "source": "# Title",
        "execution_count": None,
        "outputs": [],
    }


async def test_pictures_among_the_outputs_are_attached(session, project: Path, notebook):
    forms = {"image/png": picture(), "text/plain": "<Figure>"}
    output = {"output_type": "display_data", "metadata": {}, "data": forms}
    broken = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA"}}
    text = notebook.text(notebook.code("plot()", "p", [output, broken]))
    (project / "a.ipynb").write_text(text)
    result = await session.call("Read", file_path="a.ipynb")
    assert [block.media_type for block in result.content] == ["image/png"]
    assert "image/png, 20 x 10 pixels: attached picture 1" in result.text
    assert "not shown: image.invalid" in result.text


async def test_more_pictures_than_a_page_takes_are_named(session, project: Path, notebook):
    output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture()}}
    text = notebook.text(notebook.code("plot()", "p", [output] * 12))
    (project / "a.ipynb").write_text(text)
    result = await session.call("Read", file_path="a.ipynb")
    assert len(result.content) == 10
    assert result.text.count("read this cell alone to see it") == 2


async def test_long_outputs_are_cut_and_one_cell_alone_shows_more(session, project, notebook):
    cells = [
        notebook.code("loop()", "l", [stream("x" * 50_000 + "END\n")]),
        notebook.code("y", "m"),
    ]
    (project / "a.ipynb").write_text(notebook.text(*cells))
    result = await session.call("Read", file_path="a.ipynb")
    assert len(result.text) < 6_000
    assert "46,004 characters left out" in result.text
    assert "END" in result.text
    assert f"Read(file_path='{project}/a.ipynb', offset=1, limit=1)" in result.text
    assert "jq '.cells[0]'" in result.text
    alone = await session.call("Read", file_path="a.ipynb", offset=1, limit=1)
    assert "x" * 50_000 + "END" in alone.text


@pytest.mark.parametrize("unit", ["abc\n", "🙂é\\n", '"\\\\"', "\x1b[0mx"])
@pytest.mark.parametrize("as_list", [True, False])
async def test_a_gigantic_output_is_shown_by_its_ends(session, project, notebook, unit, as_list):
    text = "BEGIN " + unit * 100_000 + " END OF IT"
    output = stream(text) if as_list else {**stream(""), "text": text}
    (project / "a.ipynb").write_text(notebook.text(notebook.code("x", "a", [output])))
    for limit in (1, 2):
        result = await session.call("Read", file_path="a.ipynb", limit=limit)
        assert result.data["type"] == "notebook"
        assert "BEGIN " in result.text
        assert " END OF IT\n[More of it" in result.text
        assert "bytes left out" in result.text


@pytest.mark.parametrize("unit", ["\x1b", "\r", "\x1b[", "[[[{{{", "\\", '\\"', "\n"])
async def test_hostile_outputs_take_no_more_than_their_length(
    session, project: Path, notebook, unit: str
):
    def written(size: int) -> str:
        return notebook.text(notebook.code("x", "a", [{**stream(""), "text": unit * size}]))

    def reading(size: int) -> Callable[[], object]:
        data = written(size).encode()
        return lambda: [
            read_outputs(data, cell.outputs, 10_000) for cell in read_notebook(data).list_cells()
        ]

    assert grows_in_proportion(reading, 20_000)
    # What regular expressions do is not counted: the square of this would never end.
    (project / "a.ipynb").write_text(written(1_000_000))
    result = await session.call("Read", file_path="a.ipynb")
    assert result.data["type"] == "notebook"


async def test_offset_and_limit_count_cells(session, project: Path, notebook):
    text = notebook.text(*(notebook.markdown(f"cell number {n}", f"c{n}") for n in range(9)))
    (project / "a.ipynb").write_text(text)
    shown = await session.call("Read", file_path="a.ipynb", offset=3, limit=2)
    assert [cell["cell_id"] for cell in shown.data["file"]["cells"]] == ["c2", "c3"]
    assert "Showing cells 3-4 of 9" in shown.text
    assert "offset=5)" in shown.text
    tail = await session.call("Read", file_path="a.ipynb", offset=-2)
    assert [cell["cell_id"] for cell in tail.data["file"]["cells"]] == ["c7", "c8"]
    past = await session.call("Read", file_path="a.ipynb", offset=10)
    assert "only 9 cells; offset 10 is past its end" in past.text


async def test_a_long_notebook_stops_where_the_page_is_full(session, project: Path, notebook):
    text = notebook.text(*(notebook.markdown("z" * 30_000, f"c{n}") for n in range(9)))
    (project / "a.ipynb").write_text(text)
    result = await session.call("Read", file_path="a.ipynb")
    assert len(result.data["file"]["cells"]) == 6
    assert "Showing cells 1-6 of 9" in result.text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{\n<<<<<<< HEAD\n}", "not JSON"),
        ('{"cells": [], "nbformat": 3, "nbformat_minor": 0, "metadata": {}}', "its format is 3"),
        ('{"worksheets": [], "nbformat": 3}', "its format is 3"),
        ("[1, 2]", "not JSON"),
        ("plain words\n", "not JSON"),
        ('{"a": 1}', "no `nbformat`"),
        ('{"cells": [' + "[" * 100_000, "not JSON"),
        ('{"cells":[1],"nbformat":4,"nbformat_minor":5,"metadata":{}}', "not JSON"),
        ('{"nbformat":4,"nbformat_minor":5,"metadata":' + "[" * 9999 + "]" * 9999 + "}", "deep"),
    ],
)
async def test_a_file_that_is_no_notebook_is_shown_as_text(session, project, content, reason):
    (project / "a.ipynb").write_text(content)
    result = await session.call("Read", file_path="a.ipynb")
    assert result.ok
    assert result.data["type"] == "text"
    assert "not a valid notebook" in result.text
    assert reason in result.text


async def test_numbers_that_json_does_not_know_are_tolerated(session, project: Path, notebook):
    text = notebook.text(notebook.code("x", "a", [result_of(application_json={"y": 1.5})]))
    (project / "a.ipynb").write_text(text.replace("1.5", "NaN"))
    result = await session.call("Read", file_path="a.ipynb")
    assert result.data["type"] == "notebook"
    assert "NaN" in result.text


async def test_attachments_are_named(session, project: Path, notebook):
    cell = notebook.markdown("![x](attachment:x.png)", "a")
    cell["attachments"] = {"x.png": {"image/png": picture()}}
    (project / "a.ipynb").write_text(notebook.text(cell))
    result = await session.call("Read", file_path="a.ipynb")
    assert "[attached to the cell, not shown: x.png]" in result.text


async def test_write_over_a_notebook_needs_all_of_it_seen(session, project: Path, notebook):
    text = notebook.text(*(notebook.markdown(f"cell {n}", f"c{n}") for n in range(4)))
    (project / "a.ipynb").write_text(text)
    await session.call("Read", file_path="a.ipynb", limit=2)
    refused = await session.call("Write", file_path="a.ipynb", content="{}")
    assert refused.code == "file.not_read"
    await session.call("Read", file_path="a.ipynb")
    assert (await session.call("Write", file_path="a.ipynb", content="{}")).ok


async def test_a_part_of_a_notebook_on_one_line_is_not_all_of_it(session, project, notebook):
    text = json.dumps(json.loads(notebook.text(notebook.markdown("a"), notebook.markdown("b"))))
    (project / "a.ipynb").write_text(text)
    await session.call("Read", file_path="a.ipynb", limit=1)
    refused = await session.call("Write", file_path="a.ipynb", content="{}")
    assert refused.code == "file.not_read"


async def test_damaged_notebooks_always_give_something_to_read(session, project, notebook):
    chance = random.Random(3)
    output = {"output_type": "display_data", "metadata": {}, "data": {"image/png": picture()}}
    cells = [notebook.markdown("# é → \n", "a"), notebook.code("x = 1\n", "b", [output])]
    whole = notebook.text(*cells).encode()
    for _ in range(150):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(len(data))] = chance.choice(b'"\\{}[],:x1 \n')
        if chance.random() < 0.3:
            del data[chance.randrange(len(data)) :]
        (project / "a.ipynb").write_bytes(data)
        result = await session.call("Read", file_path="a.ipynb")
        assert result.ok, result.text


async def test_the_first_part_of_a_long_notebook_comes_with_an_outline(session, project, notebook):
    cells = []
    for number in range(120):
        cells.append(notebook.markdown(f"# Part {number}\nwords", f"m{number}"))
        cells.append(notebook.code("x = 1\n" * 500, f"c{number}"))
    (project / "a.ipynb").write_text(notebook.text(*cells))
    first = await session.call("Read", file_path="a.ipynb")
    outline = first.data["outline"]
    assert (outline["total"], len(outline["marks"])) == (120, 30)
    assert outline["marks"][:2] == [
        {"line": 1, "text": "# Part 0"},
        {"line": 9, "text": "# Part 4"},
    ]
    assert "[Outline (30 of 120, by cell, counted from 1): 1 # Part 0 | 9 # Part 4 |" in first.text
    one = await session.call("Read", file_path="a.ipynb", offset=9, limit=1)
    assert one.data["file"]["cells"][0]["source"].startswith("# Part 4")
    assert "outline" not in one.data
