"""Changes of lines by number: right lines, right endings, every other byte as it was."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.encoding import NotText, UnencodableCharacter
from handaxe.text.line_window import split_lines
from handaxe.text.replace import SameText
from handaxe.text.replace.numbered_edits import NumberedChange, NumberedEdits, SharedLine


def changed(content: bytes, *changes: tuple[int, int, str]) -> bytes:
    edits = NumberedEdits(content)
    edits.put([NumberedChange(a, b, edits.lines_of(text)) for a, b, text in changes])
    return edits.plan().apply(content)


@pytest.mark.proves("FT-19")
@pytest.mark.parametrize(
    ("content", "changes", "after"),
    [
        (b"a\nb\nc\n", [(2, 2, "x\ny\n")], b"a\nx\ny\nc\n"),
        (b"a\nb\nc\n", [(3, 3, "C"), (1, 1, "A")], b"A\nb\nC\n"),
        (b"a\nb\nc\n", [(2, 3, "")], b"a\n"),
        (b"a\nb\nc\n", [(1, 3, "")], b""),
        (b"a\nb\n", [(2, 2, "\n")], b"a\n\n"),
        (b"a\nb\n", [(2, 2, "\n\n")], b"a\n\n\n"),
        (b"a\nb\n", [(1, 0, "top"), (3, 2, "end")], b"top\na\nb\nend\n"),
        (b"a\nb", [(1, 0, "top"), (3, 2, "end")], b"top\na\nb\nend"),
        (b"a\nb", [(2, 2, "B\nC\n")], b"a\nB\nC"),
        (b"a\nb", [(2, 2, "")], b"a"),
        (b"a", [(1, 1, "")], b""),
        # An empty line at the end of a file needs its line break.
        (b"a\n\nb", [(3, 3, "")], b"a\n\n"),
        (b"a\nb", [(2, 2, "\n")], b"a\n\n"),
        (b"\nb", [(2, 2, "")], b"\n"),
        (b"a", [(2, 1, "b")], b"a\nb"),
        (b"", [(1, 0, "a\nb")], b"a\nb\n"),
        (b"\xef\xbb\xbf", [(1, 0, "a")], b"\xef\xbb\xbfa\n"),
        (b"\xef\xbb\xbfa\r\n", [(1, 1, "\xef\nc")], b"\xef\xbb\xbf\xc3\xaf\r\nc\r\n"),
        (b"a\r\nb\r\n", [(2, 2, "x\ny"), (1, 0, "t\n")], b"t\r\na\r\nx\r\ny\r\n"),
        (b"a\r\nb", [(3, 2, "c\nd")], b"a\r\nb\r\nc\r\nd"),
        (b"a\rb\rc", [(2, 2, "x\ny")], b"a\rx\ry\rc"),
        # Both endings: a line keeps its own, new ones end like the line before them.
        (b"a\r\nb\nc\r\n", [(2, 1, "x\ny")], b"a\r\nx\r\ny\r\nb\nc\r\n"),
        (b"a\r\nb\nc\r\n", [(3, 2, "x")], b"a\r\nb\nx\nc\r\n"),
        (b"a\r\nb\nc\r\n", [(2, 3, "x")], b"a\r\nx\r\n"),
        (b"a\r\nb\nc\r\n", [(2, 2, "B")], b"a\r\nB\nc\r\n"),
        (b"a\r\nb\nc\r\n", [(1, 0, "t")], b"t\r\na\r\nb\nc\r\n"),
        # A change, and lines put in on both sides of it.
        (b"a\nb\nc\n", [(2, 2, "B"), (2, 1, "x"), (3, 2, "y")], b"a\nx\nB\ny\nc\n"),
        (b"a\nb\nc\n", [(2, 2, ""), (2, 1, "x"), (3, 2, "y")], b"a\nx\ny\nc\n"),
        (b"a\n\nb\r\r\n", [(3, 3, "c\r")], b"a\n\nc\r\n"),
    ],
)  # fmt: skip
def test_lines_change_and_nothing_else_does(content, changes, after):
    assert changed(content, *changes) == after
    assert changed(content, *reversed(changes)) == after


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "latin-1", "cp1252"])
def test_other_encodings_stay_what_they_are(encoding):
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    before = mark + "Grüße\r\nan alle\r\nBäume\r\n" * 3
    after = before.replace("an alle", "an\r\nalle", 1)
    assert changed(before.encode(encoding), (2, 2, "an\nalle")) == after.encode(encoding)


@pytest.mark.parametrize(
    "changes",
    [
        [(1, 2, "x"), (2, 2, "y")],
        [(2, 2, "x"), (2, 2, "x")],
        [(1, 3, "x"), (2, 2, "y")],
        [(2, 1, "x"), (2, 1, "y")],
        [(1, 3, "x"), (3, 2, "y")],
        [(2, 2, "b"), (2, 2, "y")],
    ],
)
def test_two_changes_of_one_line_are_refused(changes):
    with pytest.raises(SharedLine) as refused:
        changed(b"a\nb\nc\n", *changes)
    assert (refused.value.one, refused.value.other) == (0, 1)


def test_what_changes_nothing_is_told():
    with pytest.raises(SameText):
        changed(b"a\nb\n", (2, 2, "b\n"))
    with pytest.raises(SameText):
        changed(b"a\r\nb", (1, 2, "a\nb"))


def test_binary_content_and_letters_that_do_not_fit_are_refused():
    with pytest.raises(NotText):
        NumberedEdits(b"a\0b\n")
    with pytest.raises(UnencodableCharacter):
        changed("Grüße an alle Bäume\n".encode("latin-1"), (1, 1, "猫"))


@given(st.text("ab\n\r", max_size=20))
def test_lines_are_counted_and_cut_as_read_shows_them(text):
    edits = NumberedEdits(text.encode())
    lines = split_lines(text)
    assert edits.count_up_to(100) == len(lines)
    assert [edits.line(number) for number in range(1, len(lines) + 1)] == lines
    assert not edits.has(0)
    assert not edits.has(len(lines) + 1)


CHANGE = st.tuples(
    st.integers(0, 8), st.integers(0, 3), st.lists(st.text("xyz", max_size=3), max_size=3)
)


@given(
    st.lists(st.tuples(st.text("abü", max_size=3), st.sampled_from(["\n", "\r\n"])), max_size=8),
    st.booleans(),
    st.lists(CHANGE, min_size=1, max_size=4),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
)
def test_any_changes_leave_all_other_lines_with_their_bytes(lines, has_end, wanted, encoding):
    if lines and not has_end:
        lines = [*lines[:-1], (lines[-1][0] or "z", "")]
    text = "".join(line + ending for line, ending in lines)
    changes: list[NumberedChange] = []
    position = 0
    for gap, size, new in sorted(wanted):
        first = max(gap, position) + 1
        last = min(first + size - 1, len(lines))
        if first > len(lines) + 1 or (last < first and not new):
            continue
        changes.append(NumberedChange(first, last, tuple(new)))
        position = last + 1
    content = text.encode(encoding)
    edits = NumberedEdits(content)
    edits.put(changes)
    kept = dict(enumerate(lines, 1))
    result: list[str] = []
    for number in range(1, len(lines) + 2):
        for change in changes:
            if change.first == number:
                result += change.new
        if not any(change.first <= number <= change.last for change in changes):
            result += [kept[number][0]] if number in kept else []
    try:
        after = edits.plan().apply(content)
    except SameText:
        assert result == [line for line, _ in lines]
        return
    got = after.decode(encoding)
    assert split_lines(got) == result
    head = min((change.first for change in changes), default=1) - 1
    start = "".join(line + ending for line, ending in lines[:head])
    # Only the ending of a line that has become the last of a file without one may go.
    assert got.startswith(
        start.rstrip("\r\n") if result == [line for line, _ in lines[:head]] else start
    )
    assert got.endswith("\n") == has_end or not result or not result[-1] or not lines
