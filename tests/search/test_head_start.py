"""A page of fixed text that is found without ripgrep is the page ripgrep would have given."""

import pytest
from search_tree import engine, grep, lines, plant

from handaxe.contract.ports.search import TextQuery
from handaxe.search.rg.literal_prescan import LiteralPrescan

RIPGREP, BOTH = engine("ripgrep"), engine("both")
TREE = {
    "Makefile": "needle\tand needle\r\nhay\r\nneedle\r\n",
    ".hidden/a": "needle\n",
    "a/b.py": "x\nneedle needles\ny\nneedle\n",
    "a.py": "needle",
    "a/__pycache__/b.pyc": b"\0needle\n",
    "a/late.o": b"hay\n" * 1000 + b"\0 needle\n",
    "a-b/c": "no\n" * 50 + "needle (\n" + "no\n" * 50,
    "a b/c.log": "needle\n",
    "empty": "",
    "long": "x" * 3000 + " needle " + "y" * 3000 + "\n",
    "marked": b"\xef\xbb\xbfneedle at the start\n",
    "raw": b"\xff\xfa needle \xf0\n",
    "z/deep/er/f": "needle\n" * 30,
    ".gitignore": "*.log\n",
}


@pytest.fixture(autouse=True)
def _in_no_hurry(monkeypatch):
    """A busy machine must not change who gives the answer."""
    monkeypatch.setattr("handaxe.search.rg.literal_prescan.ALONE_S", 60)


@pytest.mark.parametrize("pattern", ["needle", r"needle \(", "\tand", "nee"])
@pytest.mark.parametrize(
    "query",
    [
        {},
        {"limit": 3},
        {"limit": 5, "offset": 4},
        {"limit": 9, "before": 2, "after": 1},
        {"glob": "*.py"},
        {"file_type": "make"},
        {"glob": "!a"},
        {"respect_ignore": False},
    ],
)
async def test_the_answer_is_ripgreps(tmp_path, pattern, query):
    plant(tmp_path, TREE)

    expected = await grep(RIPGREP, tmp_path, pattern, mode="content", **query)
    found = await grep(BOTH, tmp_path, pattern, mode="content", **query)

    assert (found.lines, found.more_lines) == (expected.lines, expected.more_lines)
    assert (found.has_more, found.total_lines) == (expected.has_more, expected.total_lines)
    assert (found.total_files, found.skipped) == (expected.total_files, expected.skipped)
    assert (expected.engine, found.is_complete) == ("ripgrep", True)


async def test_it_is_taken_where_the_page_is_near(tmp_path):
    plant(tmp_path, {**TREE, "zz/sub/f": "x"})

    page = await grep(BOTH, tmp_path, "needle", mode="content", limit=2)
    whole = await grep(BOTH, tmp_path, r"\bneedles\b", mode="content", glob="*.py")
    nothing = await grep(BOTH, tmp_path, "nowhere", mode="content")

    assert (page.engine, whole.engine, nothing.engine) == ("python", "python", "ripgrep")


@pytest.mark.parametrize(
    "content",
    [
        "needleé\n",
        "a é\nneedle\n\xe9needle\n",
        "needle\n".encode("utf-16"),
        b"needle\n" + b"x" * 100_000 + b"\0",
        "needle\n" + "x" * 2_000_000,
    ],
    ids=["no ASCII behind it", "no ASCII before it", "UTF-16", "NUL far behind", "large"],
)
async def test_what_is_not_plain_is_left_to_ripgrep(tmp_path, content):
    plant(tmp_path, {"a": content, "b": "needle\n"})

    expected = await grep(RIPGREP, tmp_path, r"\bneedle\b", mode="content")
    found = await grep(BOTH, tmp_path, r"\bneedle\b", mode="content")

    assert lines(found, tmp_path) == lines(expected, tmp_path)
    assert found.engine == "ripgrep"


@pytest.mark.parametrize("query", [{}, {"before": 1}])
async def test_text_that_is_not_ascii_is_no_matter_elsewhere(tmp_path, query):
    files = {"a": "é needle é\nneedles é\n", "b": b"\xff\n needle\n\xfe", "é": "needle"}
    plant(tmp_path, files)

    expected = await grep(RIPGREP, tmp_path, r"\bneedle\b", mode="content", **query)
    found = await grep(BOTH, tmp_path, r"\bneedle\b", mode="content", **query)

    assert (found.lines, found.engine) == (expected.lines, "python")
    assert sum(line.is_match and line.line > 0 for line in found.lines) == 3


async def test_what_seemed_rare_and_is_not_comes_in_order(tmp_path):
    hay = {f"a{number:03}": "hay\n" for number in range(100)}
    plant(tmp_path, {**hay, **{f"b{number:03}": "needle\n" * 3 for number in range(100)}})

    expected = await grep(RIPGREP, tmp_path, "needle", mode="content", limit=20)
    found = await grep(BOTH, tmp_path, "needle", mode="content", limit=20)

    assert (found.lines, found.has_more) == (expected.lines, True)
    assert lines(found, tmp_path)[-1] == "b006:2:needle"


async def test_a_page_that_is_not_in_sight_is_left_to_ripgrep(tmp_path):
    files = {f"{number:03}": "hay\n" for number in range(200)}
    plant(tmp_path, {**files, "z": "needle\n"})

    found = await grep(BOTH, tmp_path, "needle", mode="content")

    assert (lines(found, tmp_path), found.engine) == (["z:1:needle"], "ripgrep")


@pytest.mark.parametrize(
    ("pattern", "options", "suits"),
    [
        ("plain text", {}, True),
        (r"\bword\b", {}, True),
        (r"\bword", {}, True),
        (r"a\.b\(", {}, True),
        (r"ends in a backslash\\b", {}, True),
        (r"\b", {}, False),
        (r"\b\b", {}, False),
        (r"a\bb", {}, False),
        (r"\w+", {}, False),
        ("a|b", {}, False),
        ("a*", {}, False),
        ("a{2}", {}, False),
        ("^a", {}, False),
        ("(a)", {}, False),
        ("(?i)a", {}, False),
        ("[a]", {}, False),
        ("a(", {}, False),
        ("a", {"ignore_case": True}, False),
        ("a", {"multiline": True}, False),
        ("a", {"only_matching": True}, False),
        ("a", {"is_file": True}, False),
        ("a", {"limit": None}, False),
        ("a", {"offset": 5_000}, False),
        ("a", {"mode": "files"}, False),
    ],
)
def test_only_fixed_text_on_a_near_page_suits(pattern, options, suits):
    query = TextQuery(pattern=pattern, root="/", **{"mode": "content", **options})

    assert LiteralPrescan.suits(query) is suits
