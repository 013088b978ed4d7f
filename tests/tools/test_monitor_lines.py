"""Patterns over lines take linear time, whatever they are."""

import pytest

from handaxe.tools.shell.monitor import BadLineRegex, compile_line_matcher


@pytest.mark.parametrize(
    ("pattern", "line", "fits"),
    [
        ("ERROR|WARN", "an ERROR here", True),
        ("^done$", "done", True),
        ("^done$", "not done", False),
        (r"(?i)fail\d+", "FAIL12", True),
        ("a.b", "axb", True),
    ],
)
def test_a_line_fits_where_it_holds_a_match(pattern, line, fits):
    assert compile_line_matcher(pattern)(line) == fits


@pytest.mark.parametrize("pattern", ["(", "(?=x)", r"(a)\1", "*"])
def test_what_is_not_in_the_dialect_is_refused(pattern):
    with pytest.raises(BadLineRegex):
        compile_line_matcher(pattern)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|a)+$", "a*a*a*a*a*b", "(.*)*x"])
def test_no_pattern_takes_for_ever(pattern):
    # By trying one way after the other, this would outlast the universe.
    assert not compile_line_matcher(pattern)("a" * 2000 + "c")
