"""Hunks of whole lines: where they go, and that nothing else moves."""

import difflib

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handaxe.text.replace import ManyPlaces, NoPlace, SameText
from handaxe.text.replace.chain import SpliceChain
from handaxe.text.replace.line_edits import LineEdits, LineHunk
from handaxe.text.replace.plan import ByteSplice, NoAnchor, NoHeader, Overlapping


def hunk(text: str, *headers: str, is_last: bool = False) -> LineHunk:
    lines = text.split("\n")
    return LineHunk(
        tuple(line[1:] for line in lines if line[0] in " -"),
        tuple(line[1:] for line in lines if line[0] in " +"),
        headers,
        is_last,
    )


def edited(content: bytes, *hunks: LineHunk) -> bytes:
    edits = LineEdits(content)
    for one in hunks:
        edits.add(one)
    return edits.plan().apply(content)


TWO_CLASSES = b"""class A:
    def f(self):
        x = 1
        return x

    def g(self):
        x = 1
        return x


class B:
    def f(self):
        x = 1
        return x
"""


def test_a_hunk_takes_whole_lines_only():
    assert edited(b"xfoo\nfoo\nfoox\n", hunk("-foo\n+bar")) == b"xfoo\nbar\nfoox\n"


def test_two_places_are_refused_with_their_lines():
    with pytest.raises(ManyPlaces) as many:
        edited(TWO_CLASSES, hunk("-        x = 1\n+        x = 2"))
    assert many.value.lines == [3, 7, 13]


def test_a_header_says_which_block_is_meant():
    after = edited(TWO_CLASSES, hunk("-        x = 1\n+        x = 2", "class B"))
    assert after == TWO_CLASSES[:-36] + TWO_CLASSES[-36:].replace(b"x = 1", b"x = 2")
    assert after.count(b"x = 2") == 1


def test_headers_inside_each_other_narrow_the_search_step_by_step():
    after = edited(TWO_CLASSES, hunk("-        x = 1\n+        x = 2", "class A:", "def g(self):"))
    assert after.split(b"\n")[6] == b"        x = 2"
    assert after.count(b"x = 2") == 1


def test_a_header_that_leaves_two_places_is_not_enough():
    with pytest.raises(ManyPlaces):
        edited(TWO_CLASSES, hunk("-        x = 1\n+        x = 2", "class A"))


def test_a_header_in_two_places_counts_where_the_lines_are():
    content = b"def f():\n    a\n\ndef g():\n    a\n\ndef f():\n    b\n"
    assert edited(content, hunk("-    b\n+    c", "def f():")).endswith(b"    c\n")
    with pytest.raises(ManyPlaces):
        edited(content + b"def f():\n    b\n", hunk("-    b\n+    c", "def f():"))


def test_lines_behind_the_block_are_found_if_they_are_there_once():
    assert (
        edited(b"def f():\n    a\nend\n", hunk("-end\n+END", "def f")) == b"def f():\n    a\nEND\n"
    )


def test_an_exact_place_outside_the_block_does_not_win_over_one_inside():
    content = b"def f():\n\tx = 1\n\ndef g():\n    x = 1\n"
    assert edited(content, hunk("-    x = 1\n+    x = 2", "def f")) == (
        b"def f():\n\tx = 2\n\ndef g():\n    x = 1\n"
    )


def test_the_lines_of_a_hunk_may_begin_above_its_header():
    content = b"@cached\ndef f():\n    a\n\n@cached\ndef g():\n    a\n"
    after = edited(content, hunk(" @cached\n-def g():\n+def h():", "def g():"))
    assert after == content.replace(b"def g", b"def h")


def test_braces_on_lines_of_their_own_do_not_end_a_block():
    content = b"void f()\n{\n  x();\n}\nvoid g()\n{\n  x();\n}\n"
    after = edited(content, hunk("-  x();\n+  y();", "void g()"))
    assert after == content[:29] + content[29:].replace(b"x", b"y")


def test_a_header_that_is_nearly_everywhere_is_refused_and_never_searched_in_part():
    content = b"def f():\n    a\n" * 60 + b"def f():\n    b\n"
    with pytest.raises(ManyPlaces) as many:
        edited(content, hunk("-    b\n+    c", "def f():"))
    assert many.value.count == 61
    assert edited(content, hunk("-    b\n+    c")).endswith(b"    c\n")


def test_a_block_that_is_too_long_to_walk_goes_to_the_end_of_the_file():
    block = b"def f():\n" + b"    x\n" * 11_000
    content = block + b"    a\n" + b"def g():\n    a\n"
    with pytest.raises(ManyPlaces):
        edited(content, hunk("-    a\n+    b", "def f():"))
    assert edited(content, hunk("-    a\n+    b", "def g():")).endswith(b"def g():\n    b\n")


def test_a_header_that_is_nowhere_is_said():
    with pytest.raises(NoHeader) as missing:
        edited(TWO_CLASSES, hunk("-x\n+y", "class C"))
    assert missing.value.header == "class C"


def test_lines_are_added_behind_a_header_or_at_the_end_but_never_somewhere():
    content = b"a\nb\nc"
    assert edited(content, hunk("+new", "b")) == b"a\nb\nnew\nc"
    assert edited(content, hunk("+new", is_last=True)) == b"a\nb\nc\nnew"
    assert edited(b"", hunk("+new")) == b"new\n"
    with pytest.raises(NoAnchor):
        edited(content, hunk("+new"))
    with pytest.raises(ManyPlaces):
        edited(b"a\nb\na\n", hunk("+new", "a"))


def test_an_empty_line_does_not_go_with_the_last_line_of_a_file_without_a_break_at_its_end():
    assert edited(b"a\n\nb", hunk(" \n-b")) == b"a\n\n"
    assert edited(b"a\nb", hunk(" a\n-b")) == b"a"


def test_the_end_of_the_file_is_only_there():
    content = b"x\ny\nx\n"
    assert edited(content, hunk("-x\n+z", is_last=True)) == b"x\ny\nz\n"
    with pytest.raises(NoPlace):
        edited(content, hunk("-y\n+z", is_last=True))


def test_hunks_may_come_in_any_order_and_share_unchanged_lines():
    content = b"a\nb\nc\nd\ne\n"
    one, two = hunk(" a\n-b\n+B\n c"), hunk(" c\n-d\n+D\n e")
    assert edited(content, one, two) == edited(content, two, one) == b"a\nB\nc\nD\ne\n"


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (hunk(" a\n-b\n+B"), hunk("-b\n+X\n c")),
        (hunk(" a\n-b\n+B"), hunk(" a\n-b\n+B")),
        (hunk(" a\n+new\n b"), hunk(" a\n+new\n b")),
        (hunk("-a\n-b\n-c"), hunk("-b\n+B")),
    ],
)
def test_hunks_that_change_the_same_lines_are_refused(one: LineHunk, two: LineHunk):
    with pytest.raises(Overlapping):
        edited(b"a\nb\nc\nd\n", one, two)


def test_lines_can_all_go():
    assert edited(b"a\nb\n", hunk("-a\n-b")) == b""
    assert edited(b"a\nb", hunk("-b")) == b"a"
    assert edited(b"a\nb", hunk("-a")) == b"b"
    assert edited(b"a\r\nb", hunk("-b")) == b"a"


def test_a_hunk_that_changes_nothing_is_passed_by():
    assert edited(b"a\nb\n", hunk(" a"), hunk("-b\n+c")) == b"a\nc\n"
    with pytest.raises(SameText):
        edited(b"a\nb\n", hunk(" a"))


def test_blank_lines_may_hold_blanks_in_the_file():
    content = b"a\n   \nb\n\t\nc\n"
    assert edited(content, hunk(" \n-b\n+B\n ")) == b"a\n   \nB\n\t\nc\n"


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "gbk", "shift_jis"])
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("end", ["", "last"])
def test_encodings_marks_and_endings_stay(encoding: str, ending: str, end: str):
    text = ending.join(["日本", "中国", "文字", end])
    after = edited(text.encode(encoding), hunk(" 日本\n-中国\n+日本語\n+二\n 文字"))
    right = ending.join(["日本", "日本語", "二", "文字", end])
    assert after == right.encode(encoding)


LINES = st.lists(
    st.sampled_from(["", "a", "b", "\tc", "    d", "  e  ", "é “q”", "x = 1", "}", "***", "@@ a"]),
    max_size=12,
)


def hunks_between(old: list[str], new: list[str], context: int) -> list[LineHunk]:
    """The hunks that difflib makes, as a patch holds them."""
    found: list[LineHunk] = []
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(context):
        before = old[group[0][1] : group[-1][2]]
        after = new[group[0][3] : group[-1][4]]
        found.append(LineHunk(tuple(before), tuple(after)))
    return found


@settings(max_examples=600)
@given(
    LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans(),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]), st.integers(0, 3),
)  # fmt: skip
def test_the_patch_from_one_text_to_another_gives_the_other_byte_for_byte_or_is_refused(
    old: list[str], new: list[str], ending: str, has_end: bool, encoding: str, context: int
):
    def stored(lines: list[str]) -> bytes:
        text = "".join(line + ending for line in lines)
        return (text if has_end else text.removesuffix(ending)).encode(encoding)

    # Without a line break at the end, an empty last line cannot be told from none.
    assume(has_end or (old and old[-1] and (not new or new[-1])))
    # A file without any line break does not say which kind it would have.
    assume(ending == "\n" or len(old) > (not has_end))
    try:
        after = edited(stored(old), *hunks_between(old, new, context))
    except (ManyPlaces, NoAnchor, SameText, Overlapping):
        # Lines that are there more than once need a larger context; never a wrong place.
        return
    assert after == stored(new)


@settings(max_examples=300)
@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]))
def test_with_the_whole_file_as_context_no_patch_is_refused(
    old: list[str], new: list[str], ending: str
):
    assume(old != new and old)
    content = "".join(line + ending for line in old).encode()
    after = edited(content, LineHunk(tuple(old), tuple(new)))
    assert after == "".join(line + ending for line in new).encode()


@settings(max_examples=400)
@given(st.binary(max_size=30), st.data())
def test_a_chain_of_splices_is_one_set_of_splices(content: bytes, data: st.DataObject):
    chain, now = SpliceChain(content), content
    for _ in range(data.draw(st.integers(0, 5))):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(now)), max_size=6)))
        pairs = list(zip(cuts[::2], cuts[1::2], strict=False))
        splices = tuple(ByteSplice(a, b, data.draw(st.binary(max_size=4))) for a, b in pairs)
        for splice in reversed(splices):
            now = now[: splice.start] + splice.data + now[splice.end :]
        chain.add(splices)
        assert chain.content == now
    try:
        splices = chain.splices()
    except SameText:
        assert now == content
        return
    result = content
    for splice in reversed(splices):
        result = result[: splice.start] + splice.data + result[splice.end :]
    assert result == now
