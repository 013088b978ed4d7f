"""What a person is shown: every character seen, none obeyed."""

import json

import pytest
from tests.hostile import SCREEN, UNSEEN, hostile_texts

from handaxe.text.visible import is_hidden, show, show_json

TEXTS = hostile_texts(5_000)


def test_nothing_that_is_shown_is_unseen_or_acts():
    shown: set[str] = set()
    for text in TEXTS:
        line, lines = show(text), show(text, lines=True)
        assert line.isprintable(), ascii(text)
        assert lines.replace("\n", "").replace("\t", "").isprintable(), ascii(text)
        shown |= {*line}
        line.encode()
    for text in TEXTS[:200]:
        assert show(show(text)) == show(text)
        assert show(show(text, lines=True), lines=True) == show(text, lines=True)
    assert {sign for sign in shown if is_hidden(sign)} <= {"\ufe0f"}


def test_the_exact_form_marks_blanks_and_marks_too():
    for text in TEXTS[:300]:
        exact = show(text, exact=True)
        assert exact.isprintable()
        assert not any(is_hidden(sign) for sign in exact)
    assert show(" a  b\t\n", exact=True) == "·a··b→␊"


@pytest.mark.parametrize("sign", [*UNSEEN, *SCREEN])
def test_every_trick_is_named(sign: str):
    assert show(f"a {sign}b") not in ("a b", f"a {sign}b")


@pytest.mark.parametrize(
    "text",
    ["Grüße, 語 हिन्दी ไทย עברית", "e\u0301 ✔\ufe0f 1\ufe0f\u20e3 👍🏽", "a\u0300\u0301\u0302b"],
)
def test_ordinary_writing_stays(text: str):
    assert show(text) == text


def test_marks_do_not_pile_up_and_do_not_reach_what_stands_before():
    assert show("a" + "\u0300" * 5) == "a\u0300\u0300\u0300<U+0300><U+0300>"
    assert show("\u0338x") == "<U+0338>x"
    assert show("a\ufe0f✔\ufe0f\ufe0f") == "a<U+FE0F>✔\ufe0f<U+FE0F>"


def test_other_values_are_shown_as_text():
    assert show(3) == "3"
    assert show(ValueError("a\x1b")) == "a\\x1b"


def test_json_on_a_screen_means_the_same():
    for text in TEXTS[:300]:
        line = json.dumps({"a": text.encode("utf-8", "replace").decode()}, ensure_ascii=False)
        shown = show_json(line)
        assert json.loads(shown) == json.loads(line)
        assert shown.isprintable()
