"""JSON with line numbers: the same values as anybody reads, and reasons for people."""

import json

import pytest
from hypothesis import given
from hypothesis import settings as effort
from hypothesis import strategies as st

from handaxe.config.keys import BadSettingsJson
from handaxe.config.located_json import LocatedJson

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.sampled_from([None, 2, "\t"]))
@effort(max_examples=200)
def test_it_reads_what_the_standard_library_writes(value, indent):
    assert LocatedJson(json.dumps(value, indent=indent)).value == value


@given(st.text(alphabet="{}[]\",:0123456789.eE+-truefalsn \n\\u/*#'", max_size=30))
@effort(max_examples=500)
def test_it_accepts_exactly_what_the_standard_library_accepts(text):
    try:
        wanted = json.loads(text, parse_constant=_refuse)
    except ValueError:
        with pytest.raises(BadSettingsJson):
            LocatedJson(text)
    else:
        found = LocatedJson(text)
        # Names that stand twice are joined here, on purpose.
        assert found.repeated or found.value == wanted


def _refuse(word):
    raise ValueError(word)


def test_every_member_and_item_has_its_line():
    found = LocatedJson('{\n "a": {\n  "b": [1,\n   2]\n }}')
    assert found.lines == {("a",): 2, ("a", "b"): 3, ("a", "b", 0): 3, ("a", "b", 1): 4}


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "empty"),
        ("  \n ", 1, "empty"),
        ('{\n "a": 1,\n}', 2, "comma too many"),
        ('{\n "a": [1,]}', 2, "comma too many"),
        ('{\n // note\n "a": 1}', 2, "no comments"),
        ('{\n "a": 1 # note\n}', 2, "no comments"),
        ("{\n 'a': 1}", 2, "double quotes"),
        ('{"a" 1}', 1, "colon"),
        ('{"a": 1\n "b": 2}', 2, "comma"),
        ('{"a": ', 1, "ends"),
        ('{"a": tru}', 1, "value"),
        ('{"a": NaN}', 1, "value"),
        ('{"a": 01}', 1, "value"),
        ('{"a": "x\ny"}', 1, "not valid"),
        ('{"a": "\\ud800"}', 1, "surrogate"),
        ('{} {"a": 1}', 1, "behind the end"),
        ("[" * 200, 1, "nested"),
        ("9" * 5000, 1, "too long"),
    ],
)
def test_what_is_not_json_is_told_with_line_and_reason(text, line, reason):
    with pytest.raises(BadSettingsJson) as caught:
        LocatedJson(text)
    assert caught.value.line == line
    assert reason in caught.value.reason


def test_a_name_that_stands_twice_loses_nothing():
    found = LocatedJson('{"p": {"deny": ["a"], "x": 1},\n "p": {"deny": ["b"]}}')
    assert found.value == {"p": {"deny": ["a", "b"], "x": 1}}
    assert found.repeated == [("p",), ("p", "deny")]
    assert found.lines[("p", "deny", 1)] == 2


def test_a_byte_order_mark_is_no_mistake():
    assert LocatedJson("\ufeff{}").value == {}
