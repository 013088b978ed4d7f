"""Notebooks: found by spans, changed by splices, everything else left as it is."""

import json
import re
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handaxe.text.json_spans import (
    MalformedJson,
    find_document,
    find_members,
    list_items,
    parse_value,
)
from handaxe.text.notebook import cell_edit as notebook_edit
from handaxe.text.notebook.document import NoSuchCell, NotANotebook, Notebook, read_notebook

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
sources = words | st.lists(words.map(lambda text: text.replace("\n", "") + "\n"), max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
outputs = st.lists(
    st.builds(lambda text: {"output_type": "stream", "name": "stdout", "text": text}, sources),
    max_size=2,
)
ids = st.text("abcXYZ019-_", min_size=1, max_size=12)


@st.composite
def cells(draw, with_ids: bool) -> dict[str, Any]:
    kind = draw(st.sampled_from(["code", "markdown", "raw"]))
    cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": draw(sources)}
    if draw(st.booleans()):
        cell["metadata"] = {"note": draw(json_values)}
    if kind == "code":
        cell |= {"outputs": draw(outputs), "execution_count": draw(st.none() | st.integers(0, 9))}
    elif draw(st.booleans()):
        cell["attachments"] = {"a.png": {"image/png": "AAAA"}}
    if with_ids:
        cell["id"] = draw(ids)
    order = draw(st.permutations(list(cell)))
    return {name: cell[name] for name in order}


@st.composite
def notebooks(draw) -> bytes:
    """A valid notebook in any style of writing JSON."""
    minor = draw(st.sampled_from([1, 4, 5]))
    made = draw(st.lists(cells(minor >= 5), max_size=5, unique_by=lambda c: c.get("id", id(c))))
    content = {"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": minor}
    content = {name: content[name] for name in draw(st.permutations(list(content)))}
    indent = draw(st.sampled_from([None, None, 1, 2, 4, "\t"]))
    compact = (",", ":") if indent is None and draw(st.booleans()) else None
    text = json.dumps(content, indent=indent, separators=compact, ensure_ascii=draw(st.booleans()))
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + text.encode()


def applied(data: bytes, change: notebook_edit.NotebookChange) -> bytes:
    return b"".join(change.pieces(data))


def cell_bytes(notebook: Notebook) -> list[bytes]:
    return [notebook.data[slice(*span)] for span in notebook.spans]


def outside(notebook: Notebook) -> tuple[bytes, bytes]:
    begin, end = notebook.parts["cells"]
    return notebook.data[:begin], notebook.data[end:]


def validate(data: bytes) -> None:
    nbformat.validate(json.loads(data.decode("utf-8-sig")))


@settings(max_examples=150)
@given(
    data=notebooks(),
    place=st.integers(0, 9),
    source=words,
    kind=st.sampled_from(["code", "markdown"]),
)
def test_an_inserted_cell_leaves_all_others_alone_and_can_be_taken_out_again(
    data: bytes, place: int, source: str, kind: str
):
    before = notebook_edit.validate_notebook(data)
    after = None if place > len(before.spans) or place == 0 else place - 1
    change = notebook_edit.insert_cell(before, after, source, kind)
    changed = applied(data, change)
    validate(changed)
    now = notebook_edit.validate_notebook(changed)
    index = 0 if after is None else after + 1
    assert (now.cell(index).source, now.cell(index).cell_type) == (source, kind)
    others = cell_bytes(now)
    del others[index]
    assert others == cell_bytes(before)
    assert outside(now) == outside(before)
    assert now.find(change.address) == index
    assert applied(changed, notebook_edit.delete_cell(now, index)) == data


@settings(max_examples=150)
@given(
    data=notebooks(),
    place=st.integers(0, 4),
    source=words,
    kind=st.sampled_from([None, "code", "markdown"]),
)
def test_a_replaced_cell_leaves_all_others_alone(
    data: bytes, place: int, source: str, kind: str | None
):
    before = notebook_edit.validate_notebook(data)
    if place >= len(before.spans):
        return
    old = before.cell(place)
    change = notebook_edit.replace_cell(before, place, source, kind)
    changed = applied(data, change)
    validate(changed)
    now = notebook_edit.validate_notebook(changed)
    cell = now.cell(place)
    assert (cell.source, cell.cell_type) == (source, kind or old.cell_type)
    assert (cell.outputs, cell.execution_count) == ((), None)
    assert cell.cell_id == old.cell_id
    assert change.old_source == old.source
    others, was = cell_bytes(now), cell_bytes(before)
    del others[place], was[place]
    assert others == was
    assert outside(now) == outside(before)
    metadata = [
        notebook.data[slice(*c.parts["metadata"])] for notebook, c in ((now, cell), (before, old))
    ]
    assert json.loads(metadata[0]) == json.loads(metadata[1])


@settings(max_examples=100)
@given(data=notebooks(), place=st.integers(0, 4))
def test_a_deleted_cell_leaves_all_others_alone(data: bytes, place: int):
    before = notebook_edit.validate_notebook(data)
    if place >= len(before.spans):
        return
    changed = applied(data, notebook_edit.delete_cell(before, place))
    validate(changed)
    now, rest = notebook_edit.validate_notebook(changed), cell_bytes(before)
    del rest[place]
    assert cell_bytes(now) == rest
    assert outside(now) == outside(before)


@settings(max_examples=200)
@given(
    data=notebooks(),
    flips=st.lists(st.tuples(st.integers(0), st.integers(0, 255)), max_size=4),
    cut=st.integers(0) | st.none(),
)
def test_a_damaged_notebook_is_refused_or_understood(data: bytes, flips, cut):
    damaged = bytearray(data)
    for place, value in flips:
        damaged[place % len(damaged)] = value
    if cut is not None:
        del damaged[cut % len(damaged) :]
    try:
        notebook = notebook_edit.validate_notebook(bytes(damaged))
    except NotANotebook:
        return
    change = notebook_edit.insert_cell(notebook, None, "x", "code")
    json.loads(applied(bytes(damaged), change).decode("utf-8-sig"))


@settings(max_examples=150)
@given(value=json_values, indent=st.sampled_from([None, 0, 3]), ascii=st.booleans())
def test_spans_agree_with_the_parser(value: Any, indent, ascii: bool):
    data = (" \n" + json.dumps(value, indent=indent, ensure_ascii=ascii) + " ").encode()
    span = find_document(data)
    assert parse_value(data, span) == value
    if isinstance(value, list):
        assert [parse_value(data, item) for item in list_items(data, span)] == value
    if isinstance(value, dict):
        assert {k: parse_value(data, v) for k, v in find_members(data, span).items()} == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        '{"a"',
        '{"a":',
        '{"a":1,}',
        "[1,]",
        "[,1]",
        '["\\"]',
        "{} {}",
        "{1:2}",
        '{"a" 1}',
        "[1 2]",
        '"' + '\\"' * 200_000,
    ],
)
def test_what_is_not_json_is_refused_in_no_time(text: str):
    data = text.encode()
    look = list_items if data.startswith(b"[") else find_members
    with pytest.raises(MalformedJson):
        look(data, find_document(data))


STYLE = (
    '{"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["a"]}], "metadata": {}, '
    '"nbformat": 4, "nbformat_minor": 4}'
)


def test_a_notebook_on_one_line_stays_on_one_line():
    notebook = read_notebook(STYLE.encode())
    changed = applied(notebook.data, notebook_edit.insert_cell(notebook, 0, "b\nc", "markdown"))
    new = '{"cell_type": "markdown", "metadata": {}, "source": ["b\\n", "c"]}'
    assert changed.decode() == STYLE.replace("}], ", "}, " + new + "], ")


def test_characters_beyond_ascii_are_written_as_the_notebook_writes_them():
    escaped = read_notebook(STYLE.replace('"a"', '"\\u00e9"').encode())
    assert b'"\\u2192"' in applied(escaped.data, notebook_edit.replace_cell(escaped, 0, "→", None))
    plain = read_notebook(STYLE.replace('"a"', '"é"').encode())
    assert '"→"'.encode() in applied(plain.data, notebook_edit.replace_cell(plain, 0, "→", None))


def test_a_notebook_that_does_both_is_not_made_to_escape_more():
    mixed = read_notebook(STYLE.replace('"a"', '"é \\u00e9"').encode())
    assert '"→"'.encode() in applied(mixed.data, notebook_edit.replace_cell(mixed, 0, "→", None))


def test_new_ids_have_the_form_of_the_format_and_old_formats_have_none():
    modern = read_notebook(STYLE.replace('"nbformat_minor": 4', '"nbformat_minor": 5').encode())
    change = notebook_edit.insert_cell(modern, None, "x", "code")
    assert re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", change.address)
    old = read_notebook(STYLE.encode())
    assert b'"id"' not in applied(old.data, notebook_edit.insert_cell(old, None, "x", "code"))


def test_cells_are_found_by_id_first_and_then_by_index():
    cells = [
        {"cell_type": "raw", "id": name, "metadata": {}, "source": ""}
        for name in ("2", "b", "cell-0")
    ]
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    notebook = read_notebook(json.dumps(content).encode())
    assert [notebook.find(name) for name in ("2", "b", "cell-0", "1", "cell-1", "0")] == [
        0,
        1,
        2,
        1,
        1,
        0,
    ]
    for missing in ("c", "3", "cell-3", "-1", "", "cell-x"):
        with pytest.raises(NoSuchCell):
            notebook.find(missing)


def test_an_id_that_two_cells_share_is_refused():
    cells = [{"cell_type": "raw", "id": "a", "metadata": {}, "source": ""}] * 2
    content = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    with pytest.raises(NoSuchCell, match="2 cells have the id"):
        read_notebook(json.dumps(content).encode()).find("a")
