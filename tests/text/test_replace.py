import codecs
import tracemalloc
from collections.abc import Callable

import pytest
from tests.counted_work import grows_in_proportion

from handaxe.text.replace import (
    AmbiguousMatch,
    EmptyNeedle,
    NoPlace,
    NotText,
    SameText,
    UnencodableCharacter,
    is_already_applied,
    is_empty,
    plan_replacement,
)


def edited(content: str, old: str, new: str, *, replace_all: bool = False) -> tuple[str, str]:
    data = content.encode()
    made = plan_replacement(data, old, new, replace_all=replace_all)
    return made.matched_with, made.apply(data).decode()


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        ("x = 1\n", "1", "2", "x = 2\n"),
        ("a\nb\nc\n", "b\n", "", "a\nc\n"),
        ("a\nb", "b", "b\n", "a\nb\n"),
        ("one", "one", "two", "two"),
        ("a.b(c)", ".b(", r"\1\g<0>$1", r"a\1\g<0>$1c)"),
        ("日本語", "本", "\U0001f600", "日\U0001f600語"),
        ("a\nb\n", "a", "a\r\nc", "a\nc\nb\n"),
        ("a\r\nb\r\n", "a", "x\ny", "x\r\ny\r\nb\r\n"),
        ("a\r\nb\r\n", "a\r\nb", "a\r\nx\nb", "a\r\nx\r\nb\r\n"),
        ("a\r\nfoo\r\n", "\nfoo", "\nbar\nfoo", "a\r\nbar\r\nfoo\r\n"),
        ("a\r\nfoo\r\n", "\nfoo", "", "a\r\n"),
        ("a\r\nb", "b", "b\nc", "a\r\nb\r\nc"),
        ("a\rb\r", "b", "b\nc", "a\rb\rc\r"),
        ("a\r\nb\nc", "a", "a\nx", "a\r\nx\r\nb\nc"),
        ("a\r\nb\nc", "b", "b\nx", "a\r\nb\nx\nc"),
        ("only", "only", "x\r\ny", "x\r\ny"),
        ("progress\rdone\n", "done", "do\rne", "progress\rdo\rne\n"),
    ],
)
def test_an_exact_match_changes_only_line_breaks(
    content: str, old: str, new: str, after: str
) -> None:
    assert edited(content, old, new) == ("exact", after)


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        ("a\r\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\nc\r\n"),
        ("a\nb\n", "a\r\nb", "a\r\nx\r\nb", "a\nx\nb\n"),
        ("a\rb\rc", "a\nb", "x\ny", "x\ry\rc"),
        ("a\r\nb\nc\r\nd\n", "a\nb\nc", "a\nB\nnew\nc", "a\r\nB\nnew\nc\r\nd\n"),
        ("a\nb\r\nc\nd\r\n", "b\nc\nd\n", "b\nd\n", "a\nb\r\nd\r\n"),
        ("xa\r\nby\r\n", "a\nb", "a\nc", "xa\r\ncy\r\n"),
        ("a\r\n\r\nb\r\n", "\n\n", "\n", "a\r\nb\r\n"),
        ("a\r\nb\nc\r\n", "a\nb\nc\n", "", ""),
    ],
)
def test_other_line_endings_are_found_and_kept_line_by_line(
    content: str, old: str, new: str, after: str
) -> None:
    assert edited(content, old, new) == ("line_endings", after)


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        ("a  \nb\nc\n", "a\nb", "a\nB", "a  \nB\nc\n"),
        ("a\nb\nc\n", "a  \nb", "a  \nB", "a\nB\nc\n"),
        ("a\nb\nc\n", "b  \nc", "B\nc", "a\nB\nc\n"),
        ("a\nb\t\nc\n", "b  ", "B", "a\nB\nc\n"),
        ("    a  \n    b\n", "a\n    b", "a\n    B", "    a  \n    B\n"),
        ("a  \r\nb\r\n", "a\nb\n", "a\nx\nb\n", "a  \r\nx\r\nb\r\n"),
        ("a  \nb\n", "a\nb\n", "a\t\nb\n", "a\t\nb\n"),
        ("a   \n\t\nb\n", "a\n\nb", "a\n\nc", "a   \n\t\nc\n"),
    ],
)
def test_other_blanks_at_line_ends_are_found_and_kept(
    content: str, old: str, new: str, after: str
) -> None:
    assert edited(content, old, new) == ("trailing_blanks", after)


def test_blanks_at_the_end_of_what_was_given_reach_the_end_of_the_line() -> None:
    with pytest.raises(NoPlace):
        plan_replacement(b"value = 10\n", "value = 1  ", "value = 2")


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        ("\tx = 1\n", "    x = 1", "    x = 2", "\tx = 2\n"),
        (
            "if a:\n\tb()\n\tif c:\n\t\td()\n",
            "    b()\n    if c:\n        d()",
            "    b()\n    if c:\n        d()\n        if e:\n            f()",
            "if a:\n\tb()\n\tif c:\n\t\td()\n\t\tif e:\n\t\t\tf()\n",
        ),
        (
            "def f():\n  a()\n  if b:\n    c()\n",
            "\ta()\n\tif b:\n\t\tc()\n",
            "\ta()\n\tif b:\n\t\tc()\n\t\twhile d:\n\t\t\te()\n",
            "def f():\n  a()\n  if b:\n    c()\n    while d:\n      e()\n",
        ),
        ("a:\n\tb\n\n\tc\n", "    b\n\n    c\n", "    b\n\n    d\n", "a:\n\tb\n\n\td\n"),
        ("a:\n\tb\n   \n\tc\n", "    b\n\n    c\n", "    b\n\n    d\n", "a:\n\tb\n   \n\td\n"),
        ("\ta\r\n\tb\r\n", "  a\n  b", "  a\n  x\n  b", "\ta\r\n\tx\r\n\tb\r\n"),
        ("x:\n\t\tb()\n", "        b()", "    if a:\n        b()", "x:\n\tif a:\n\t\tb()\n"),
        ("a\n\tb\n\tc\n", "\n    b\n", "\n    x\n", "a\n\tx\n\tc\n"),
        ("\tf(a,\n\t  b)\n", "    f(a,\n      b)", "    f(a,\n      c)", "\tf(a,\n\t  c)\n"),
        ("\tb()\n", "    b()", "    b()\n\tc()", "\tb()\n\tc()\n"),
        ("\tb()\n", "        b()", "        b()\n\tc()", "\tb()\n\tc()\n"),
        (
            "\tb()\n",
            "    b()",
            "    if a:\n        if c:\n            b()",
            "\tif a:\n\t\tif c:\n\t\t\tb()\n",
        ),
        (
            "x:\n  y:\n  b()\n",
            "\tb()",
            "\tif a:\n\t\tif c:\n\t\t\tb()",
            "x:\n  y:\n  if a:\n    if c:\n      b()\n",
        ),
        ("\tf(a)\n", "    f(a)", "    f(a,\n      b)", "\tf(a,\n\t\tb)\n"),
        (
            "\tif x:\n\t\tf(a)\n",
            "    if x:\n        f(a)",
            "    if x:\n        f(a,\n          b)\n        g()",
            "\tif x:\n\t\tf(a,\n\t\t  b)\n\t\tg()\n",
        ),
        ("class A:\n    def f():\n        x\n", "def f():\n    x", "def g():\n    x",
         "class A:\n    def g():\n        x\n"),
    ],
)  # fmt: skip
def test_other_indentation_is_found_and_taken_on(
    content: str, old: str, new: str, after: str
) -> None:
    assert edited(content, old, new) == ("indentation", after)


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        # So many spaces for so many tabs.
        ("\t\t\ta()\n", "      a()", "        b()\n      a()", "\t\t\t\tb()\n\t\t\ta()\n"),
        ("\t\t\ta()\n", "      a()", "  b()", "\tb()\n"),
        # Lines that only get shallower show a step as well.
        (
            "      x\n        a\n        b\n    c\n",
            "\t\ta\n\t\tb\nc",
            "c\n\td\n\t\te",
            "      x\n    c\n      d\n        e\n",
        ),
        # Lines that are all equally deep still show that four blanks are not one level.
        ("  a\n  b\n", "    a\n    b", "    a\n        b", "  a\n    b\n"),
        # A tab in front of a line is a level where the text to replace had no blanks at all.
        ("x:\n\ta\n\tb\n", "a\nb", "a\n\tc\nb", "x:\n\ta\n\t\tc\n\tb\n"),
        ("x:\n    a\n    b\n", "a\nb", "a\n\tc\nb", "x:\n    a\n        c\n    b\n"),
        ("x:\n\ta\n\tb\n", "a\nb", "  c", "x:\n\t\tc\n"),
    ],
)
def test_deeper_lines_grow_by_the_files_own_unit_whatever_shows_the_given_one(
    content: str, old: str, new: str, after: str
) -> None:
    assert edited(content, old, new) == ("indentation", after)


@pytest.mark.parametrize(
    ("content", "old"),
    [
        # One given indent for two of the file's.
        ("\ta\n\t\tb\n", "    a\n    b"),
        # Two given indents for one of the file's.
        ("\ta\n\tb\n", "    a\n        b"),
        # Deeper becomes shallower.
        ("\t\ta\n\tb\n", "    a\n        b"),
        # Not a whole line.
        ("\tab\n\tc\n", "    a\n    c"),
        ("\ta\n\tbc\n", "    a\n    b"),
        # Another difference beside the indentation.
        ("\ta  \n\tb\n", "    a\n    b"),
        ("\tit’s\n", "    it's"),
    ],
)
def test_indentation_that_does_not_map_one_to_one_is_no_match(content: str, old: str) -> None:
    with pytest.raises(NoPlace):
        plan_replacement(content.encode(), old, "x")


@pytest.mark.parametrize(
    ("content", "old", "new", "after"),
    [
        ("print(“hello”)\n", 'print("hello")', 'print("goodbye")', "print(“goodbye”)\n"),
        ("it’s 10–20 km\n", "it's 10-20 km", "it's 10-30 km", "it’s 10–30 km\n"),
        ("a\u00a0b\n", "a b", "a c", "a\u00a0c\n"),
        ("x = 'a'\n", "x = ‘a’", "x = ‘a’ + ‘b’", "x = 'a' + 'b'\n"),
        ("x = 'a'\n", "x = ‘a’\n", "x = ‘a’\ny = ‘b’\n", "x = 'a'\ny = 'b'\n"),
        ("“a”, “b”", '"a", "b"', '"a", "c", "b"', "“a”, “c”, “b”"),
        ("don’t stop", "don't stop", "don't stop, can't stop", "don’t stop, can’t stop"),
        ("“a” b", '"a" b', '"a" “b”', "“a” “b”"),
        ("“a” b", '"a" b', "a b", "a b"),
        ("a – b\r\nc — d\r\n", "a - b\nc - d", "a - b\nc - e", "a – b\r\nc — e\r\n"),
        ("10\u202fkm", "10 km", "10 km per hour", "10\u202fkm per hour"),
        ("− 1", "- 1", "- 2", "− 2"),
    ],
)
def test_other_quotes_and_dashes_are_found_and_kept(
    content: str, old: str, new: str, after: str
) -> None:
    assert edited(content, old, new) == ("quotes", after)


@pytest.mark.parametrize(
    ("content", "old"),
    [("wait…", "wait..."), ("«a»", '"a"'), ("caf\u00e9", "cafe\u0301"), ("ａ", "a"), ("′", "'")],
)
def test_signs_outside_the_table_are_different(content: str, old: str) -> None:
    with pytest.raises(NoPlace):
        plan_replacement(content.encode(), old, "x")


def test_straight_quotes_become_curly_on_purpose() -> None:
    assert edited("say 'hi'\n", "say 'hi'", "say ‘hi’") == ("exact", "say ‘hi’\n")
    assert edited("say “a” 'b'", "say \"a\" 'b'", 'say "a" ‘b’') == ("quotes", "say “a” ‘b’")


@pytest.mark.parametrize(
    ("content", "old", "matched_with", "lines", "count"),
    [
        ("aaa", "aa", "exact", [1, 1], 2),
        ("x = 1\ny\nx = 1\n", "x = 1", "exact", [1, 3], 2),
        ("a\r\nb\r\na\r\nb\r\n", "a\nb", "line_endings", [1, 3], 2),
        ("a \nb\na  \nb\n", "a\nb", "trailing_blanks", [1, 3], 2),
        ("\ta\n\t\ta\n", "    a", "indentation", [1, 2], 2),
        ("it’s\nit‘s\n", "it's", "quotes", [1, 2], 2),
        ("x\n" * 5_000, "x", "exact", list(range(1, 21)), 1_000),
    ],
)
def test_two_places_in_the_deciding_class_are_refused(
    content: str, old: str, matched_with: str, lines: list[int], count: int
) -> None:
    with pytest.raises(AmbiguousMatch) as caught:
        plan_replacement(content.encode(), old, "new")
    refusal = caught.value
    assert (refusal.matched_with, refusal.lines, refusal.count) == (matched_with, lines, count)


def test_an_earlier_class_decides_alone() -> None:
    assert edited("it's\nit’s\n", "it's", "X") == ("exact", "X\nit’s\n")
    assert edited("a\nb\na \nb\n", "a\nb", "X", replace_all=True) == ("exact", "X\na \nb\n")


@pytest.mark.parametrize(
    ("content", "old", "new", "after", "places"),
    [
        ("aaa", "aa", "b", "ba", 1),
        ("a b a", "a", "aa", "aa b aa", 2),
        ("a\r\nb\na\nb\r\n", "a\nb\n", "c\nd\n", "c\r\nd\nc\nd\r\n", 2),
        ("\ta\n\t\ta\n", "    a", "    b", "\tb\n\t\tb\n", 2),
        ("“a” „a”", '"a"', '"b"', "“b” „b”", 2),
    ],
)
def test_replace_all_takes_every_place_of_the_deciding_class(
    content: str, old: str, new: str, after: str, places: int
) -> None:
    made = plan_replacement(content.encode(), old, new, replace_all=True)
    assert (made.apply(content.encode()).decode(), made.places) == (after, places)


@pytest.mark.parametrize(
    ("content", "old"),
    [("a\r\nb", "a\nb"), ("a \nb", "a\nb"), ("\ta", "  a"), ("it’s", "it's")],
)
def test_exact_tolerance_takes_nothing_else(content: str, old: str) -> None:
    with pytest.raises(NoPlace):
        plan_replacement(content.encode(), old, "x", tolerance="exact")


def test_classes_do_not_combine_except_with_line_endings() -> None:
    with pytest.raises(NoPlace):
        plan_replacement("\tit’s \r\n\tb\r\n".encode(), "    it's\n    b", "x")


@pytest.mark.parametrize(
    ("content", "old", "new"),
    [
        ("a", "a", "a"),
        ("a", "", ""),
        ("a\nb", "a\nb", "a\r\nb"),
        ("a\r\nb", "a\nb", "a\r\nb"),
        ("a\nb", "a \nb", "a\nb"),
        ("it’s", "it's", "it’s"),
    ],
)
def test_an_edit_that_changes_no_byte_is_refused(content: str, old: str, new: str) -> None:
    with pytest.raises(SameText):
        plan_replacement(content.encode(), old, new)


def test_nothing_to_find_and_nothing_to_search_are_refused() -> None:
    with pytest.raises(EmptyNeedle):
        plan_replacement(b"a", "", "b")
    with pytest.raises(NoPlace):
        plan_replacement(b"", "a", "b")
    with pytest.raises(NoPlace):
        plan_replacement(b"a", "a longer text than the file", "b")
    with pytest.raises(NoPlace):
        plan_replacement(b"abc\n", "   ", "x")
    with pytest.raises(NotText):
        plan_replacement(b"a\0b", "a", "b")


def test_half_a_surrogate_pair_is_never_found_and_never_written() -> None:
    with pytest.raises(NoPlace):
        plan_replacement(b"abc", "\ud800", "x")
    with pytest.raises(UnencodableCharacter):
        plan_replacement(b"abc", "b", "x\udfff")


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    content = codecs.BOM_UTF8 + b"a\n"
    assert plan_replacement(content, "a", "b").apply(content) == codecs.BOM_UTF8 + b"b\n"
    with pytest.raises(NoPlace):
        plan_replacement(content, "\ufeffa", "b")
    assert is_empty(codecs.BOM_UTF8)


@pytest.mark.parametrize(
    "encoding", ["utf-16", "utf-32", "gbk", "big5", "shift_jis", "euc-jp", "euc-kr"]
)
def test_other_encodings_keep_theirs(encoding: str) -> None:
    letters = {"gbk": "读取配置文件", "utf-16": "读取配置文件", "utf-32": "读取配置文件"}
    letters |= {"big5": "讀取設定檔案", "shift_jis": "設定を読み込む", "euc-jp": "設定を読み込む"}
    words = letters.get(encoding, "설정 파일을 읽는다")
    content = f"# {words}\r\n\tx = 1  # {words}\r\n# {words}\r\n".encode(encoding)
    made = plan_replacement(content, f"    x = 1  # {words}\n", f"    x = 2  # {words}\n    y\n")
    expected = f"# {words}\r\n\tx = 2  # {words}\r\n\ty\r\n# {words}\r\n".encode(encoding)
    assert made.apply(content) == expected
    assert made.matched_with == "indentation"


def test_a_character_that_the_encoding_lacks_is_named_by_its_place_in_the_new_text() -> None:
    content = "# 读取配置文件\r\nx\r\n".encode("gbk")
    with pytest.raises(UnencodableCharacter) as caught:
        plan_replacement(content, "x", "a\nb\n\U0001f600")
    assert (caught.value.character, caught.value.position) == ("\U0001f600", 4)


def test_an_edit_that_is_already_there_is_recognised() -> None:
    assert is_already_applied(b"x = 2\n", "x = 1", "x = 2")
    assert is_already_applied(b"\ta()\r\n\tb()\r\n", "    a()\n    c()", "    a()\n    b()")
    assert not is_already_applied(b"x = 1\nx = 2\n", "x = 1", "x = 2")
    assert not is_already_applied(b"x = 2\nx = 2\n", "x = 1", "x = 2")
    assert not is_already_applied(b"}\n", "x", "}")
    assert not is_already_applied(b"a\n", "b", "")


def test_pieces_share_the_bytes_that_stay() -> None:
    content = b"x" * 1000 + b"a" + b"y" * 1000
    pieces = list(plan_replacement(content, "a", "bb").pieces(content))
    assert b"".join(pieces) == b"x" * 1000 + b"bb" + b"y" * 1000
    assert pieces[0].obj is content
    assert pieces[-1].obj is content


def test_an_exact_match_in_a_large_file_needs_no_second_copy() -> None:
    content = b"some line of text\n" * 1_000_000 + "the é place\n".encode() + b"more\n" * 100_000
    tracemalloc.start()
    try:
        made = plan_replacement(content, "the é place", "another\nplace")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert made.matched_with == "exact"
    # Checking UTF-8 decodes a megabyte at a time.
    assert peak < 6_000_000


@pytest.mark.parametrize(
    ("unit", "end", "old"),
    [
        (b"    x = 1\n", b"", "\tx = 1\n" * 200 + "y"),
        (b" " * 10, b"", "a  b"),
        (b" " * 10, b"\na b", "a b  \n"),
        (b"ab" * 5, b"", "ab" * 5_000 + "b b"),
        ("’’’".encode(), b"x", "'" * 1_000 + "y"),
        (b"\r\n" * 5, b"", "\n" * 1_000 + "x"),
    ],
)  # fmt: skip
def test_a_search_in_vain_ends_soon_however_alike_the_lines(
    unit: bytes, end: bytes, old: str
) -> None:
    def search(size: int) -> Callable[[], object]:
        content = unit * size + end

        def in_vain() -> None:
            with pytest.raises(NoPlace):
                plan_replacement(content, old, "new")

        return in_vain

    # What regular expressions do is not counted: in a megabyte, a square of it would never end.
    assert grows_in_proportion(search, 10_000)
