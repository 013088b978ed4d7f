"""Windows of lines: the same whether the text is split or searched."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handaxe.text import line_window as windows

texts = st.lists(st.sampled_from(["a", "bc", "", "é", "x\ry"]), max_size=12).flatmap(
    lambda words: st.sampled_from(["\n", "\r\n", "\r"]).flatmap(
        lambda end: st.sampled_from(["", end]).map(lambda last: end.join(words) + last)
    )
)


@settings(max_examples=500)
@given(text=texts, offset=st.integers(-15, 15).filter(bool), limit=st.integers(1, 15))
def test_searching_for_a_window_finds_what_splitting_finds(text: str, offset: int, limit: int):
    split = windows.slice_lines(text, offset, limit)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows, "_SPLIT_CHARS", 0)
        searched = windows.slice_lines(text, offset, limit)
    assert searched == split


def test_a_window_deep_in_a_text_is_found():
    text = "".join(f"line {number}\n" for number in range(1, 100_001))
    assert windows.slice_lines(text, 70_000, 2) == (["line 70000", "line 70001"], 70_000, 100_000)
    assert windows.slice_lines(text, -1, 5) == (["line 100000"], 100_000, 100_000)
    assert windows.slice_lines(text, 100_001, 5) == ([], 100_001, 100_000)
    assert windows.slice_lines(text, 2**62, 2**62) == ([], 2**62, 100_000)


@pytest.mark.parametrize(
    ("text", "lines"),
    [("a", "1 line"), ("a\nb", "2 lines"), ("a\nb\n", "2 lines"), ("a\rb\r", "2 lines")],
)
def test_a_preview_counts_lines_as_read_does(text: str, lines: str):
    shown = windows.build_preview(text, str, within=0)
    assert f"({len(text):,} characters, {lines})" in shown
    assert f"[... {max(0, len(text) - 2)} characters left out ...]" in shown
