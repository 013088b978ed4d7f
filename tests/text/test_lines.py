from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.lines import line_break_of, lines_back, lines_on, split_lines


@given(st.text(alphabet="ab\n", max_size=30), st.integers(0, 30), st.integers(0, 5))
def test_positions_agree_with_splitting(text: str, position: int, count: int) -> None:
    position = min(position, len(text))
    assert "".join(split_lines(text)) == text
    starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
    here = max(i for i, start in enumerate(starts) if start <= position)
    assert lines_back(text, position, count, "\n") == starts[max(0, here - count)]
    ends = [*starts[1:], len(text)]
    expected = ends[min(here + count - 1, len(ends) - 1)] if count else position
    assert lines_on(text, position, count, "\n") == expected


def test_cr_breaks_lines_only_without_lf() -> None:
    assert line_break_of("a\rb") == "\r"
    assert line_break_of("a\rb\n") == "\n"
    assert line_break_of("ab") == "\n"
    assert split_lines("a\rb", "\r") == ["a\r", "b"]
    assert lines_back(b"a\nb\nc", 4, 1, b"\n") == 2
