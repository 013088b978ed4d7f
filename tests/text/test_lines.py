from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.line_window import (
    detect_line_break,
    find_line_end,
    find_line_start,
    split_keeping_ends,
)


@given(st.text(alphabet="ab\n", max_size=30), st.integers(0, 30), st.integers(0, 5))
def test_positions_agree_with_splitting(text: str, position: int, count: int) -> None:
    position = min(position, len(text))
    assert "".join(split_keeping_ends(text)) == text
    starts = [0, *(i + 1 for i, c in enumerate(text) if c == "\n")]
    here = max(i for i, start in enumerate(starts) if start <= position)
    assert find_line_start(text, position, count, "\n") == starts[max(0, here - count)]
    ends = [*starts[1:], len(text)]
    expected = ends[min(here + count - 1, len(ends) - 1)] if count else position
    assert find_line_end(text, position, count, "\n") == expected


def test_cr_breaks_lines_only_without_lf() -> None:
    assert detect_line_break("a\rb") == "\r"
    assert detect_line_break("a\rb\n") == "\n"
    assert detect_line_break("ab") == "\n"
    assert split_keeping_ends("a\rb", "\r") == ["a\r", "b"]
    assert find_line_start(b"a\nb\nc", 4, 1, b"\n") == 2
