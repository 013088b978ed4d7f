"""Patches as models write them, and as they come in pieces."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handaxe.text.replace.line_edits import LineHunk
from handaxe.text.replace.patch_format import BadPatch, find_patch_paths, parse_patch

PATCH = """\
*** Begin Patch
*** Update File: src/a.py
@@ class A
@@     def f(self):
 kept
-old
+new

 after
@@
+last
*** End of File
*** Add File: b.txt
+one
+
+two
*** Delete File: old name.txt
*** Update File: c.py
*** Move to: d/c.py
*** End Patch"""


def test_a_patch_says_what_becomes_of_each_file():
    update, add, delete, move = parse_patch(PATCH)
    assert (update.kind, update.path, update.move_to) == ("update", "src/a.py", None)
    assert update.hunks == (
        LineHunk(
            ("kept", "old", "", "after"), ("kept", "new", "", "after"), ("class A", "def f(self):")
        ),
        LineHunk((), ("last",), is_last=True),
    )
    assert (add.kind, add.path, add.content) == ("add", "b.txt", "one\n\ntwo\n")
    assert (delete.kind, delete.path) == ("delete", "old name.txt")
    assert (move.path, move.move_to, move.hunks) == ("c.py", "d/c.py", ())


@pytest.mark.parametrize(
    "wrapped",
    [
        f"apply_patch <<'EOF'\n{PATCH}\nEOF\n",
        f'apply_patch <<"PATCH"\n{PATCH}\nPATCH',
        f"```diff\n{PATCH}\n```",
        f"Here is the patch:\n\n{PATCH}\n\nThat is all.",
        f"\n\n  {PATCH}\n\n",
        PATCH.replace("\n", "\r\n"),
        PATCH.replace("\n*** ", "\n\n*** ").replace("\n\n*** Move", "\n*** Move"),
        PATCH.replace("src/a.py", "  'src/a.py'  "),
    ],
)
def test_what_models_put_around_a_patch_is_passed_by(wrapped: str):
    assert parse_patch(wrapped) == parse_patch(PATCH)


def test_line_numbers_in_a_header_say_nothing():
    text = "*** Begin Patch\n*** Update File: a\n@@ -1,2 +1,3 @@ def f\n-x\n+y\n*** End Patch"
    assert parse_patch(text)[0].hunks == (LineHunk(("x",), ("y",)),)


def test_a_hunk_needs_no_header_and_a_file_may_come_back():
    text = (
        "*** Begin Patch\n*** Update File: a\n-x\n+y\n*** Update File: b\n-q\n"
        "*** Update File: a\n-1\n+2\n*** End Patch"
    )
    first, second = parse_patch(text)
    assert [hunk.old for hunk in first.hunks] == [("x",), ("1",)]
    assert second.path == "b"


def test_two_patches_in_one_text_are_one():
    one = "*** Begin Patch\n*** Delete File: a\n*** End Patch\n"
    assert [file.path for file in parse_patch(one + one.replace(": a", ": b"))] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 0, "no line '*** Begin Patch'"),
        ("*** Update File: a\n-x\n+y", 0, "no line '*** Begin Patch'"),
        ("*** Begin Patch\n*** End Patch", 3, "names no file"),
        ("*** Begin Patch\n*** Update File: a\n*** End Patch", 2, "no lines to change"),
        ("*** Begin Patch\n*** Update File:\n-x\n*** End Patch", 2, "a path is missing"),
        ("*** Begin Patch\n*** Rename File: a\n*** End Patch", 2, "stands where"),
        ("*** Begin Patch\n*** Update File: a\nx = 1\n*** End Patch", 3, "neither ' ', '-' nor"),
        ("*** Begin Patch\n*** Update File: a\n@@ x\n*** End Patch", 3, "holds no lines"),
        ("*** Begin Patch\n*** Add File: a\nx = 1\n*** End Patch", 3, "has to begin with '+'"),
        ("*** Begin Patch\n*** Delete File: a\n-x\n*** End Patch", 3, "stands where"),
        ("*** Begin Patch\n*** Add File: a\n*** Delete File: a\n*** End Patch", 3, "named twice"),
        ("*** Begin Patch\n*** Delete File: a\n", 3, "cut off"),
        ("*** Begin Patch\n*** Delete File: a\n*** Begin Patch\n*** End Patch", 3, "stands where"),
    ],
)
def test_what_is_wrong_with_a_patch_is_said_with_its_line(text: str, line: int, reason: str):
    with pytest.raises(BadPatch) as bad:
        parse_patch(text)
    assert reason in bad.value.reason
    assert bad.value.line == line


@pytest.mark.parametrize("end", range(len(PATCH)))
def test_a_patch_that_was_cut_off_anywhere_is_refused(end: int):
    with pytest.raises(BadPatch):
        parse_patch(PATCH[:end])


@settings(max_examples=500)
@given(
    st.lists(
        st.sampled_from(
            [
                *PATCH.split("\n"),
                "",
                "@@",
                "***",
                "*** End of File",
                "-",
                "+",
                "junk",
                "*** Move to: x",
            ]
        )
    )
)
def test_any_lines_are_a_patch_or_a_refusal(lines: list[str]):
    try:
        found = parse_patch("\n".join(lines))
    except BadPatch:
        return
    assert found
    assert all(patch.path for patch in found)


def test_an_unfinished_patch_names_its_files():
    assert find_patch_paths(PATCH[:60]) == ["src/a.py"]
    assert find_patch_paths(PATCH) == ["src/a.py", "b.txt", "old name.txt", "c.py"]
