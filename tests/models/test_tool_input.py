"""What a model wrote as a call's input, whole or broken."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.models.response_json import is_complete_json, read_input

WHOLE = {
    "": {},
    "  \n": {},
    "{}": {},
    "null": {},
    '{"a": 1}': {"a": 1},
    ' {"a": [1, 2]}\n': {"a": [1, 2]},
    '"{\\"a\\": 1}"': {"a": 1},
    '{}{"a": 1}': {"a": 1},
    '[1]': [1],
    '"text"': "text",
    "7": 7,
    '{"a": "\\u00e4"}': {"a": "ä"},
}  # fmt: skip

BROKEN = [
    "{", '{"a"', '{"a":', '{"a": 1', '{"a": "x', '{"a": 1}}', "{'a': 1}", '{"a": NaN}', "{a: 1}",
    '{"a": 1,}', '```json\n{"a": 1}\n```', "[" * 100_000, '{"a": "\t"}x', "undefined", '{"a": "\\ud8"}',
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE)
def test_whole_input_is_read(text: str):
    assert read_input(text) == (WHOLE[text], None)


@pytest.mark.parametrize("text", BROKEN, ids=lambda text: text[:12])
def test_broken_input_is_kept_as_it_was_written(text: str):
    assert read_input(text) == ({}, text)
    assert not is_complete_json(text)


@given(st.text())
def test_no_text_makes_it_fail(text: str):
    read = read_input(text)
    assert read.broken in (None, text)
