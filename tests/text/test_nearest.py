import random
import sys
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counted_work import grows_in_proportion

from handaxe.text.escape import describe_character, to_visible_text
from handaxe.text.replace import plan_replacement
from handaxe.text.replace.fuzzy_match import find_similar_text

WORDS = ["def", "return", "if", "while", "import", "self", "value", "name", "count", "result"]


def listing(lines: int, seed: int = 7) -> list[str]:
    rng = random.Random(seed)
    return [
        f"{'    ' * rng.randrange(4)}{' '.join(rng.choices(WORDS, k=rng.randrange(1, 9)))}"
        f" {rng.randrange(10**6)}\n"
        for _ in range(lines)
    ]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\tx = 1", "→x = 1"),
        ("  x = 1 ", "··x = 1·"),
        ("a  b", "a··b"),
        ("a\u00a0b", "a<U+00A0>b"),
        ("a\u200bb\ufeff", "a<U+200B>b<U+FEFF>"),
        ("e\u0301", "e<U+0301>"),
        ("a\r", "a␍"),
        ("\t  x", "→··x"),
        ("it’s é 日本", "it’s é 日本"),
        ("\ud800\x00", "<U+D800><U+0000>"),
    ],
)
def test_invisible_characters_are_shown(text: str, shown: str) -> None:
    assert to_visible_text(text, exact=True) == shown


def test_characters_have_names() -> None:
    assert describe_character("’") == "U+2019 RIGHT SINGLE QUOTATION MARK"
    assert describe_character("\t") == "U+0009 TAB"
    assert describe_character("") == "end of line"


def test_one_changed_line_is_found_and_shown() -> None:
    text = "def f():\n    a = 1\n    b = 2\n    return a + b\n"
    (place,) = find_similar_text(text, "    a = 1\n    b = 3\n    return a + b\n")
    assert (place.first_line, place.last_line, place.differs) == (2, 4, 3)
    assert place.text == "    a = 1\n    b = 2\n    return a + b\n"
    assert (place.given, place.stored) == ("····b = 3", "····b = 2")
    assert place.stored_character == "U+0032 DIGIT TWO"
    assert place.is_unique


def test_blanks_that_do_not_combine_are_shown() -> None:
    (place,) = find_similar_text("if x:\n\tfoo( 1 )\n\tbar()\n", "if x:\n    foo(1)\n    bar()\n")
    assert (place.given, place.stored) == ("····foo(1)", "→foo( 1 )")


def test_missing_and_added_lines_are_bridged() -> None:
    lines = listing(200)
    text = "".join(lines)
    (place, *_) = find_similar_text(text, "".join([*lines[50:60], *lines[63:70]]))
    assert place.text == "".join(lines[50:70])
    (place, *_) = find_similar_text(
        text, "".join([*lines[50:60], "something new\n", *lines[60:70]])
    )
    assert place.text == "".join(lines[50:70])


def test_a_part_of_a_line_stays_a_part() -> None:
    text = "result = compute_everything(first_argument, second_argument) + other_thing(1, 2, 3)\n"
    (place,) = find_similar_text(text, "compute_everything(first_argument, second_arg)")
    assert place.text.startswith("compute_everything(first_argument")
    assert len(place.text) < 60


def test_a_place_in_one_endless_line_is_a_part_of_it() -> None:
    text = ";".join(line.strip() for line in listing(20_000))
    wanted = text[500_000:500_080]
    (place, *_) = find_similar_text(text, wanted.replace("e", "E", 1))
    assert wanted[10:70] in place.text
    assert len(place.text) < 300


def test_nothing_similar_gives_nothing() -> None:
    assert find_similar_text("a = 1\nb = 2\n", "completely different words here") == []
    assert find_similar_text("", "x") == []
    assert find_similar_text("x", " \n") == []


def test_a_text_longer_than_the_file_finds_the_file() -> None:
    text = "alpha = 1\nbeta = 2\n"
    (place,) = find_similar_text(text, "alpha = 1\nbeta = 2\ngamma = 3\n")
    assert (place.first_line, place.last_line, place.differs) == (1, 2, 3)
    assert find_similar_text(text, "".join(listing(300))) == []


def test_at_most_three_places_that_do_not_overlap() -> None:
    text = "".join(f"call_{n}(value, other)\n" for n in range(10))
    places = find_similar_text(text, "call_x(value, other)")
    assert len(places) == 3
    assert len({place.first_line for place in places}) == 3


def test_the_text_of_a_unique_place_can_be_sent_back() -> None:
    lines = listing(500)
    content = "".join(lines).encode()
    for start in range(0, 480, 20):
        lost = "".join(lines[start : start + 5]).replace("e", "E", 2)
        if lost in content.decode():
            continue
        place = find_similar_text(content.decode(), lost)[0]
        assert place.is_unique
        assert plan_replacement(content, place.text, "x").matched_with == "exact"


@given(st.text(max_size=80), st.text(max_size=40))
def test_any_texts_are_compared_without_failing(text: str, old: str) -> None:
    for place in find_similar_text(text, old):
        assert place.text in text
        assert 1 <= place.first_line <= place.last_line


def test_help_comes_without_the_fuzzy_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rapidfuzz", None)
    (place,) = find_similar_text("def f():\n    a = 1\n    b = 2\n", "    a = 1\n    b = 3\n")
    assert place.text == "    a = 1\n    b = 2\n"
    assert find_similar_text("qwertz uiop = 1\n", "qwerty uiop = 1")[0].first_line == 1


@pytest.mark.parametrize("count", [1, 5, 200])
def test_help_takes_no_more_than_the_length_of_the_text(count: int) -> None:
    lines = listing(33_000)
    lost = "".join(line.replace("1", "7") for line in lines[2_000 : 2_000 + count])

    def help_in(size: int) -> Callable[[], object]:
        text = "".join(lines[:size])
        return lambda: find_similar_text(text, lost)

    find_similar_text("warm", "up")
    assert grows_in_proportion(help_in, 3_300)
