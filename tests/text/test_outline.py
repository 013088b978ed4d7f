"""Outlines: what stands where, told from single lines."""

import pytest
from tests.expected_types import require

from handaxe.tools.files.read.outline import MOST, build_outline


def marks(text: str, name: str) -> list[tuple[int, str]]:
    outline = build_outline(text, name)
    assert outline is not None
    return [(mark.line, mark.text) for mark in outline.marks]


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("a.md", "# A\n```\n# no\n```\ntext\n## B\n#no\n", [(1, "# A"), (6, "## B")]),
        ("a.MD", "# A\n```\n# open\n", [(1, "# A"), (3, "# open")]),
        ("a.py", "x = 1\nclass A:\n    async def b(self):\n", [(2, "class A:"), (3, "async def b(self):")]),
        ("a.go", "package x\nfunc (s *S) Do() {\ntype T struct {\n", [(2, "func (s *S) Do()"), (3, "type T struct")]),
        ("a.ts", "export const f = async (a: X) => {\nconst x = 5\nexport default class A {\n",
         [(1, "export const f = async (a: X) =>"), (3, "export default class A")]),
        ("a.rs", "use x;\npub(crate) fn a() {\nimpl<T> X<T> {\n", [(2, "pub(crate) fn a()"), (3, "impl<T> X<T>")]),
        ("a.c", "int g(void);\nstatic int f(int a,\n    int b)\n{\n  g();\n}\nstruct s {\n",
         [(2, "static int f(int a,"), (7, "struct s")]),
        ("A.java", "public final class A {\n  private int x;\n  enum B {\n", [(1, "public final class A"), (3, "enum B")]),
        ("a.toml", "x = 1\n[tool.ruff]\n[[turn]]\n", [(2, "[tool.ruff]"), (3, "[[turn]]")]),
    ],
)  # fmt: skip
def test_headings_and_definitions_are_found(name, text, found):
    assert marks(text, name) == found


def test_a_kind_that_is_not_known_has_no_outline():
    assert build_outline("# A\n", "a.log") is None
    assert build_outline("# A\n", "README") is None


def test_too_many_lose_the_deep_ones_first():
    text = "".join(f"## Part {n}\n" + "### Detail\n" * 5 for n in range(MOST))
    assert [text for _, text in marks(text, "a.md")] == [f"## Part {n}" for n in range(MOST)]


def test_what_is_left_is_spread_over_the_whole():
    outline = require(build_outline("def f():\n    pass\n" * 1_000, "a.py"))
    lines = [mark.line for mark in outline.marks]
    assert (len(lines), outline.total, lines[0]) == (MOST, 1_000, 1)
    assert lines == sorted(set(lines))
    assert lines[-1] > 1_900


def test_long_lines_are_cut():
    assert marks(f"# {'x' * 500}\n", "a.md") == [(1, f"# {'x' * 78}…")]


@pytest.mark.parametrize(
    ("name", "line"),
    [("a.ts", "const a:\n"), ("a.ts", "const a = (\n"), ("a.toml", "["), ("a.md", "~~~x\n"), ("a.c", "a(")],
)  # fmt: skip
def test_no_text_keeps_a_pattern_busy(name, line):
    # A pattern that looks to the end of the text from every line would be at it for minutes.
    outline = require(build_outline(line * ((1 << 20) // len(line)), name))
    assert len(outline.marks) <= MOST


def test_a_definition_may_go_over_a_few_lines():
    text = "const f = (\n  a: A,\n  b: B,\n): C => {\nconst g: Fn<\n  A\n> = (a) => a\n"
    assert [line for line, _ in marks(text, "a.ts")] == [1, 5]
