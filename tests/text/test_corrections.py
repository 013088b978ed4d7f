"""What was meant by an edit that found no place: every known mistake, alone and two at once."""

import json
import re
from collections.abc import Callable
from typing import Literal
from unicodedata import normalize

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handaxe.text.line_tags import format_tagged_lines
from handaxe.text.line_window import LineFormat, number_lines
from handaxe.text.replace import NoPlace, Tolerance, plan_replacement
from handaxe.text.replace.corrections import CorrectedEdit, find_correction

NAME = "a.py"


def correct(
    content: str | bytes, old: str, new: str, tolerance: Tolerance = "visible"
) -> CorrectedEdit | None:
    data = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(NoPlace):
        plan_replacement(data, old, new, tolerance=tolerance)
    text = data.decode("utf-16" if data.startswith(b"\xff\xfe") else "utf-8")
    return find_correction(data, text, old, new, name=NAME, tolerance=tolerance)


def land(content: str | bytes, old: str, new: str, tolerance: Tolerance = "visible") -> bytes:
    """The file after the corrected edit is sent."""
    found = correct(content, old, new, tolerance)
    assert found is not None
    assert found.old is not None
    assert found.new is not None
    data = content if isinstance(content, bytes) else content.encode()
    return plan_replacement(data, found.old, found.new, tolerance=tolerance).apply(data)


WORDS = ["total", "é", "naïve", "x1", "한글", "return", "ảo", "value", "(a)", "z = 1", "it's"]
line = st.builds(
    lambda depth, words, end: "    " * depth + " ".join(words) + end,
    st.integers(0, 2),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3),
    st.sampled_from(["", ' "text"', ' "a\\n"', "  # don't", " \\d+"]),
)


@st.composite
def edits(draw: st.DrawFn) -> tuple[str, int, int, list[str]]:
    """Lines of a file that differ, where an edit begins and ends, and its new lines."""
    lines = [
        f"{one} {number}" for number, one in enumerate(draw(st.lists(line, min_size=3, max_size=8)))
    ]
    for at in draw(st.lists(st.integers(1, len(lines) - 1), max_size=2)):
        lines.insert(at, "")
    first = draw(st.integers(0, len(lines) - 2))
    last = draw(st.integers(first + 1, min(len(lines), first + 4)))
    old = lines[first:last]
    assume(old[0] and old[-1])
    at = draw(st.sampled_from([n for n, one in enumerate(old) if one]))
    new = [*old]
    new[at] = draw(st.sampled_from([old[at] + "0", old[at].replace(" ", "  ", 1) + " y", "plain"]))
    if draw(st.booleans()):
        new.insert(at + 1, "    added")
    return "\n".join(lines) + "\n", first, last, new


Mangle = Callable[[list[str], int], list[str]]


def numbered(style: LineFormat) -> Mangle:
    return lambda lines, first: number_lines(lines, first + 1, style).split("\n")


def piped(lines: list[str], first: int) -> list[str]:
    return [f"{number}|{one}" for number, one in enumerate(lines, first + 1)]


def searched(lines: list[str], first: int) -> list[str]:
    return [f"src/{NAME}:{number}:{one}" for number, one in enumerate(lines, first + 1)]


def tagged(lines: list[str], first: int) -> list[str]:
    return format_tagged_lines(lines, first + 1).split("\n")


def escaped(lines: list[str], _: int) -> list[str]:
    return [json.dumps("\n".join(lines), ensure_ascii=False)[1:-1]]


def composed(form: Literal["NFC", "NFD"]) -> Mangle:
    return lambda lines, _: [normalize(form, one) for one in lines]


def curled(lines: list[str], _: int) -> list[str]:
    return [re.sub('"([^"]*)"', "“\\1”", one).replace("'", "’") for one in lines]


MANGLES: dict[str, tuple[str, Mangle]] = {
    "nfd": ("composition", composed("NFD")),
    "nfc": ("composition", composed("NFC")),
    "curled": ("quotes", curled),
    "arrow": ("line_numbers", numbered("arrow")),
    "tab": ("line_numbers", numbered("tab")),
    "pipe": ("line_numbers", piped),
    "grep": ("line_numbers", searched),
    "tags": ("line_numbers", tagged),
    "escaped": ("escaped", escaped),
}


def add_blank(lines: list[str], after: str) -> list[str]:
    return [piece for one in lines for piece in ((one, "") if one == after else (one,))]


@settings(max_examples=80, deadline=None)
@given(
    edit=edits(),
    ways=st.lists(st.sampled_from([*MANGLES]), min_size=1, max_size=2, unique=True),
    stored=st.sampled_from(["NFC", "NFD"]),
    ending=st.sampled_from(["\n", "\r\n"]),
    tolerance=st.sampled_from(["visible", "exact"]),
)
def test_a_mangled_edit_is_corrected_to_what_the_true_edit_does(
    edit: tuple[str, int, int, list[str]],
    ways: list[str],
    stored: Literal["NFC", "NFD"],
    ending: str,
    tolerance: Tolerance,
) -> None:
    content, first, last, wanted = edit
    assume(len({MANGLES[way][0] for way in ways}) == len(ways))
    content = normalize(stored, content)
    old, new = content.split("\n")[first:last], [normalize(stored, one) for one in wanted]
    true_old, true_new = "\n".join(old), "\n".join(new)
    data = content.replace("\n", ending).encode()
    right = plan_replacement(data, true_old, true_new).apply(data)
    ways.sort(key=[*MANGLES].index)
    assume("escaped" not in ways or "\\" in escaped(old, 0)[0])
    for way in ways:
        old, new = (MANGLES[way][1](lines, first) for lines in (old, new))
    given_old, given_new = "\n".join(old), "\n".join(new)
    try:
        plan_replacement(data, given_old, given_new, tolerance=tolerance)
    except NoPlace:
        pass
    else:
        assume(False)
    found = correct(data, given_old, given_new, tolerance)
    assert found is not None
    assert found.old is not None
    assert found.new is not None
    assert plan_replacement(data, found.old, found.new, tolerance=tolerance).apply(data) == right


@settings(max_examples=40, deadline=None)
@given(edit=edits(), data=st.data(), with_numbers=st.booleans())
def test_one_blank_line_too_many_or_missing_is_put_right(
    edit: tuple[str, int, int, list[str]], data: st.DataObject, with_numbers: bool
) -> None:
    content, first, last, new = edit
    old = content.split("\n")[first:last]
    kept = [one for one in old[:-1] if one and one in new[:-1]]
    assume(kept)
    after = data.draw(st.sampled_from(kept))
    mangled = [add_blank(lines, after) for lines in (old, new)]
    if "" in old and data.draw(st.booleans()):
        at = old.index("")
        assume(old[at - 1] in new)
        again = new.index(old[at - 1]) + 1
        assume(new[again : again + 1] == [""])
        mangled = [old[:at] + old[at + 1 :], new[:again] + new[again + 1 :]]
    if with_numbers:
        mangled = [numbered("arrow")(lines, first) for lines in mangled]
    right = plan_replacement(content.encode(), "\n".join(old), "\n".join(new)).apply(
        content.encode()
    )
    assert land(content, "\n".join(mangled[0]), "\n".join(mangled[1])) == right


@pytest.mark.parametrize(
    ("content", "old", "new", "right"),
    [
        ('x = "a\\nb"\ny\n', 'x = "a\nb"', 'x = "a\nc"', 'x = "a\\nc"\ny\n'),
        ('x = "a\\tb"\n', 'x = "a\tb"', 'x = "a\tb\tc"', 'x = "a\\tb\\tc"\n'),
        ('x = "say \\"hi\\""\n', 'x = "say "hi""', 'y = "say "hi""', 'y = "say \\"hi\\""\n'),
        ("m = re.c('\\\\d+')\n", "m = re.c('\\d+')", "n = re.c('\\d+')", "n = re.c('\\\\d+')\n"),
        ('a\nx = "p\\nq"\nb\n', 'a\nx = "p\nq"\nb', 'A\nx = "p\nq"\nB', 'A\nx = "p\\nq"\nB\n'),
    ],
)
def test_signs_that_the_file_spells_with_a_backslash_are_spelled_so_again(
    content: str, old: str, new: str, right: str
) -> None:
    found = correct(content, old, new)
    assert found is not None
    assert found.mistakes == ("unescaped",)
    assert land(content, old, new) == right.encode()


@pytest.mark.parametrize("tolerance", ["visible", "exact"])
@pytest.mark.parametrize(
    ("content", "old", "new", "mistake"),
    [
        ("    x\ny\n    x\n", "     1→    x", "     1→    z", "line_numbers"),
        ("a\nb\nc\na\nb\n", "a\\nb", "a\\nz", "escaped"),
        ("a\n\nb\nc\na\n\nb\n", "a\nb", "a\nz", "blank_lines"),
        ("é x\né x\n", "e\u0301 x", "e\u0301 y", "composition"),
        ('"a\\nb"\n"a\\nb"\n', '"a\nb"', '"a\nc"', "unescaped"),
    ],
)
def test_two_places_are_named_and_no_call_is_proposed(
    content: str, old: str, new: str, mistake: str, tolerance: Tolerance
) -> None:
    found = correct(content, old, new, tolerance)
    assert found is not None
    assert found.mistakes == (mistake,)
    assert len(found.lines) == 2
    assert (found.old, found.new) == (None, None)


@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        # The break in the new string may be one of the file or one of the text.
        ("def f():\n    pass\n", "def f():\\n    pass", 'def f():\\n    print("a\\nb")'),
        # Quotes of both kinds stand in the file: which kind the new one is, nobody knows.
        ('x = "say \\"hi\\""\n', 'x = "say "hi""', 'x = "say "hi" "ho""'),
        # Lines of the file begin with numbers themselves.
        ("1:one\n2:two\n", "1:1:one\n2:2:two", "1:uno\n2:dos"),
        # The blank line of the file would go with the lines around it.
        ("a\n\nb\n", "a\nb", "one\ntwo\nthree"),
    ],
)
def test_what_may_be_meant_in_two_ways_is_not_proposed(content: str, old: str, new: str) -> None:
    found = correct(content, old, new)
    assert found is None or found.old is None


@settings(max_examples=60, deadline=None)
@given(
    content=st.text("ab \n\t\\n\"'é\u0301’1:→", max_size=40),
    old=st.text("ab \n\t\\n\"'é\u0301’1:→", min_size=1, max_size=12),
    new=st.text('ab \n\\n"é', max_size=12),
    tolerance=st.sampled_from(["visible", "exact"]),
)
def test_whatever_is_proposed_has_one_place(
    content: str, old: str, new: str, tolerance: Tolerance
) -> None:
    data = content.encode()
    try:
        plan_replacement(data, old, new, tolerance=tolerance)
    except NoPlace:
        found = correct(content, old, new, tolerance)
        if found is not None and found.old is not None:
            assert found.new is not None
            assert plan_replacement(data, found.old, found.new, tolerance=tolerance).places == 1
    except Exception:  # noqa: BLE001 - any other refusal is not about what was meant
        pass


def test_a_vast_file_is_searched_around_the_longest_piece_only() -> None:
    content = "é line\n" * 300_000 + "the only é place\n"
    assert b"the only \xc3\xa9 room" in land(
        content, "the only e\u0301 place", "the only e\u0301 room"
    )
    assert correct(content, "e\u0301 line", "x") is None
