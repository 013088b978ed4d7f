"""Text and JSON that every file can hold."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.sanitize import (
    MAX_DEPTH,
    escape_surrogates,
    find_flaws,
    has_plain_values,
    is_well_formed,
    scrub,
    walk_leaves,
)

any_text = st.text(st.characters(), max_size=20) | st.sampled_from(["\ud800", "a\udfffb"])
json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=15,
)


def nested(levels):
    value: list[Any] = []
    for _ in range(levels):
        value = [value]
    return value


def test_fine_text_is_given_back_as_the_same_object():
    for text in ("", "abc", "äöü", "中文", "😀"):
        assert escape_surrogates(text) is text


def test_a_lone_surrogate_becomes_a_visible_escape():
    assert escape_surrogates("a\ud800b😀") == "a\\ud800b😀"


@given(any_text)
def test_the_answer_can_always_be_written(text):
    escape_surrogates(text).encode()
    assert (escape_surrogates(text) == text) == is_well_formed(text)


def test_every_key_and_every_text_is_scrubbed():
    assert scrub({"a\ud800": ["x", ("\udfff",), 1, None]}) == {
        "a\\ud800": ["x", ["\\udfff"], 1, None]
    }


@given(json_like)
def test_what_is_scrubbed_holds_nothing_ill_formed(value):
    assert all(
        is_well_formed(leaf) for _, leaf in walk_leaves(scrub(value)) if isinstance(leaf, str)
    )
    assert json.dumps(scrub(value), ensure_ascii=False).encode()


def test_what_lies_too_deep_is_replaced():
    scrubbed = scrub(nested(10_000))

    assert json.dumps(scrubbed).count("[") == MAX_DEPTH
    assert "nested more than 100 levels deep" in json.dumps(scrubbed)


@given(st.dictionaries(st.text("abc", max_size=3), json_like, max_size=3))
def test_the_fast_look_and_the_thorough_one_agree(raw):
    assert has_plain_values(raw) == (not find_flaws(raw))


def test_neither_depth_nor_a_cycle_takes_long():
    cycle: list[Any] = []
    cycle += [cycle, cycle, cycle]

    assert not has_plain_values({"a": cycle})
    assert not has_plain_values({"a": nested(10_000)})
    assert len(find_flaws({"a": cycle})) == 1


class Mute:
    def __str__(self) -> str:
        raise RuntimeError("planned")


def test_any_value_of_python_comes_to_an_end_and_has_names_that_json_takes():
    ring: list[Any] = []
    ring += [ring, ring]
    names = {("a", 1): 1, None: 2, Mute(): 3, 4: 4, "half \ud800": ring}

    assert scrub(names) == {
        "('a', 1)": 1,
        "None": 2,
        "(Mute)": 3,
        4: 4,
        "half \\ud800": ["(holds itself)", "(holds itself)"],
    }


def test_what_is_there_twice_does_not_hold_itself():
    shared = [1]

    assert scrub([shared, {"a": shared}]) == [[1], {"a": [1]}]
