import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.counted_work import grows_in_proportion

from handaxe.text.diff import (
    NO_NEWLINE,
    DiffStat,
    Hunk,
    count_changes,
    diff_plan,
    diff_texts,
    format_hunks,
    format_unified_diff,
)
from handaxe.text.replace import AmbiguousMatch, NoPlace, SameText, plan_replacement

lines = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n", "é\n"]), max_size=25)
texts = st.builds(lambda head, tail: "".join(head) + tail, lines, st.sampled_from(["", "z"]))


def split(text: str) -> list[str]:
    return re.findall("[^\n]*\n|[^\n]+", text)


def applied(text: str, hunks: list[Hunk]) -> str:
    """The hunks applied by their letter, every number and every line checked."""
    stored, after, position = split(text), [], 0
    for hunk in hunks:
        after += stored[position : hunk.old_start - 1]
        position = hunk.old_start - 1
        old, new = [], []
        for line, following in zip(hunk.lines, [*hunk.lines[1:], ""], strict=True):
            if line == NO_NEWLINE:
                continue
            whole = line[1:] + ("" if following == NO_NEWLINE else "\n")
            old += [whole] if line[0] in " -" else []
            new += [whole] if line[0] in " +" else []
        assert stored[position : position + hunk.old_lines] == old
        assert (len(old), len(new), hunk.new_start) == (
            hunk.old_lines,
            hunk.new_lines,
            len(after) + 1,
        )
        after += new
        position += hunk.old_lines
    return "".join(after + stored[position:])


def test_a_hunk_shows_three_lines_around_a_change() -> None:
    old = "".join(f"{n}\n" for n in range(1, 11))
    assert diff_texts(old, old.replace("5", "five")) == [
        Hunk(2, 7, 2, 7, [" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"])
    ]


def test_names_are_camel_case_in_json_only() -> None:
    (hunk,) = diff_texts("a\n", "b\n")
    assert msgspec.json.decode(msgspec.json.encode(hunk)) == {
        "oldStart": 1,
        "oldLines": 1,
        "newStart": 1,
        "newLines": 1,
        "lines": ["-a", "+b"],
    }


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("a\n", "a\n", ""),
        ("a\nb", "a\nb\n", f"@@ -1,2 +1,2 @@\n a\n-b\n{NO_NEWLINE}\n+b\n"),
        ("", "x\n", "@@ -0,0 +1,1 @@\n+x\n"),
        ("x\n", "", "@@ -1,1 +0,0 @@\n-x\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        ("a\n", "a\r\n", "@@ -1,1 +1,1 @@\n-a\n+a\r\n"),
        ("a\rb\r", "a\rc\r", "@@ -1,2 +1,2 @@\n a\n-b\n+c\n"),
        ("a\rb\nc\n", "a\rb\nd\n", "@@ -1,2 +1,2 @@\n a\rb\n-c\n+d\n"),
    ],
)
def test_a_unified_diff_reads_as_usual(old: str, new: str, expected: str) -> None:
    head = "--- old\n+++ new\n" if expected else ""
    assert format_unified_diff(old, new) == head + expected


def test_numbers_are_lines_added_and_deleted() -> None:
    assert count_changes(diff_texts("a\nb\n", "a\nc\nd")) == DiffStat(additions=2, deletions=1)
    assert format_hunks([]) == ""


@given(texts, texts, st.sampled_from([0, 1, 3]))
def test_hunks_lead_from_one_text_to_the_other(old: str, new: str, context: int) -> None:
    hunks = diff_texts(old, new, context)
    assert applied(old, hunks) == new
    assert bool(hunks) == (old != new)


@given(texts, texts, texts, st.sampled_from(["", "\n", "X", "X\nY\n"]), st.booleans())
def test_the_patch_of_a_plan_is_the_patch_of_its_texts(
    head: str, old: str, tail: str, new: str, replace_all: bool
) -> None:
    content = head + old + tail
    try:
        made = plan_replacement(content.encode(), old or "q", new, replace_all=replace_all)
    except (NoPlace, AmbiguousMatch, SameText):
        return
    hunks = diff_plan(content.encode(), made)
    assert applied(content, hunks) == made.apply(content.encode()).decode()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32", "gbk"])
def test_the_patch_of_a_plan_knows_its_encoding(encoding: str) -> None:
    text = "".join(f"# 读取配置文件 {n}\r\n" for n in range(9))
    content = text.encode(encoding)
    hunks = diff_plan(content, plan_replacement(content, "文件 4", "文件 四\n"))
    assert hunks == diff_texts(text, text.replace("文件 4", "文件 四\r\n"))
    assert hunks[0].old_start == 2
    first = diff_plan(content, plan_replacement(content, "# 读取配置文件 0", "x"))
    assert first[0].lines[:2] == ["-# 读取配置文件 0", "+x"]


def test_far_changes_are_separate_hunks_with_shifted_numbers() -> None:
    content = "".join("x\n" if n % 50 == 0 else f"{n}\n" for n in range(200))
    made = plan_replacement(content.encode(), "x\n", "y\nz\n", replace_all=True)
    hunks = diff_plan(content.encode(), made)
    assert [hunk.old_start for hunk in hunks] == [1, 48, 98, 148]
    assert [hunk.new_start for hunk in hunks] == [1, 49, 100, 151]


HARD_TO_COMPARE: dict[str, Callable[[int], tuple[str, str]]] = {
    "alike": lambda n: ("x\n" * 6 * n + "q\n" + "x\n" * n, "x\n" * 2 * n + "r\n" + "x\n" * 4 * n),
    "reversed": lambda n: (numbered(range(6 * n)), numbered(range(6 * n, 0, -1))),
    "mixed": lambda n: ("a\nb\n" * 4 * n, "b\nb\na\n" * 3 * n),
}


def numbered(numbers: range) -> str:
    return "".join(f"{n}\n" for n in numbers)


@pytest.mark.parametrize("texts", HARD_TO_COMPARE.values(), ids=HARD_TO_COMPARE)
def test_texts_that_are_hard_to_compare_still_end_soon(
    texts: Callable[[int], tuple[str, str]],
) -> None:
    def compare(size: int) -> Callable[[], object]:
        old, new = texts(size)
        return lambda: diff_texts(old, new)

    assert grows_in_proportion(compare, 500)
    old, new = texts(5_000)
    assert applied(old, diff_texts(old, new)) == new
