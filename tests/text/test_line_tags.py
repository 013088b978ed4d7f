"""Tags of lines: short, stable, of the text alone."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.line_tags import (
    TAG_COUNT,
    LineRef,
    compute_tag,
    format_tagged_lines,
    make_line_ref,
    parse_ref,
    parse_shown_ref,
)
from handaxe.text.line_window import number_lines, split_lines

LINE = st.text(st.characters(exclude_characters="\r\n"), max_size=30)


@pytest.mark.proves("FT-19")
@pytest.mark.parametrize(
    ("line", "tag"),
    [("", "aa"), ("}", "bt"), ("    return None", "jj"), ("ümlaut → ok", "mm"), ("a ", "p7")],
)
def test_a_tag_stays_what_it_is_between_versions(line, tag):
    assert compute_tag(line) == tag


@given(LINE)
def test_a_tag_is_two_signs_that_cannot_be_taken_for_others(line):
    first, second = compute_tag(line)
    assert first.isalpha()
    assert not set(first + second) & set("ilo01IO")
    assert compute_tag(line) == compute_tag(line).lower()


@given(LINE, st.integers(1, 10**9), st.sampled_from(["\n", "\r\n", "\r"]))
def test_a_tag_depends_on_the_text_and_on_nothing_else(line, number, ending):
    [*_, shown] = split_lines(f"x{ending}{line}{ending}")
    assert make_line_ref(number, shown) == LineRef(number, compute_tag(line))


@given(LINE, st.integers(1, 10**9), LINE)
def test_what_is_shown_in_front_of_a_line_names_it(line, number, behind):
    ref = make_line_ref(number, line)
    assert parse_ref(str(ref)) == ref
    assert parse_ref(f"  {str(ref).upper()} ") == ref
    for style in ("arrow", "tab"):
        shown = format_tagged_lines([line], number, style)
        assert parse_ref(shown) == ref
        assert parse_shown_ref(shown) == ref
        assert shown.endswith(line)


@pytest.mark.parametrize("text", ["", "k3", "12:", "12:k", "12:k33", "-1:k3", "1.5:k3", "12 k3", "a:k3"])  # fmt: skip
def test_what_names_no_line_is_none(text):
    assert parse_ref(text) is None


def test_a_number_without_a_tag_is_a_line_without_one():
    assert parse_ref("12") == LineRef(12, "")
    assert parse_shown_ref("    12→text") is None


def test_blanks_at_the_end_count_and_tags_are_spread_evenly():
    assert compute_tag("a") != compute_tag("a ")
    counts = Counter(compute_tag(f"    value_{number} = {number}") for number in range(50_000))
    assert len(counts) == TAG_COUNT
    assert max(counts.values()) < 2 * 50_000 / TAG_COUNT


@given(st.lists(LINE, min_size=1, max_size=5), st.integers(1, 999_999))
def test_without_the_tags_it_is_what_everybody_sees(lines, first):
    shown = format_tagged_lines(lines, first)
    for line in lines:
        shown = shown.replace(f":{compute_tag(line)}→", "→", 1)
    if "→" not in "".join(lines):
        assert shown == number_lines(lines, first)


def test_a_line_that_is_cut_has_the_tag_of_all_of_it():
    whole = ["x" * 5_000, "y"]
    assert (
        format_tagged_lines(["xx", "y"], 7, whole=whole)
        == f"     7:{compute_tag(whole[0])}→xx\n     8:{compute_tag('y')}→y"
    )
    assert format_tagged_lines(["xx"], 7, whole=whole, untagged=7) == "     7→xx"
