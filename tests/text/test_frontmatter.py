"""The block of YAML at the head of a Markdown file."""

import pytest

from handaxe.text.frontmatter import BadFrontmatter, parse_bool, parse_word_list, split_frontmatter


@pytest.mark.parametrize(
    ("text", "fields", "body"),
    [
        ("---\na: 1\n---\nbody\n", {"a": 1}, "body\n"),
        ("\ufeff---\r\na: x\r\n---\r\nbody\r\n", {"a": "x"}, "body\n"),
        ("no head\n---\n", {}, "no head\n---\n"),
        ("---\n---\nbody", {}, "body"),
        ("", {}, ""),
        ("---\nlist:\n  - a\n  - b\n---\n", {"list": ["a", "b"]}, ""),
        ("---\ntext: |\n  two\n  lines\n---\nx", {"text": "two\nlines"}, "x"),
    ],
)
def test_head_and_body_are_told_apart(text, fields, body):
    assert split_frontmatter(text) == (fields, body)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\na: [\n---\n", 2),
        ("---\n- a\n---\n", 2),
        ("---\na: 1\n", 1),
        ("---\na: b: c\n---\n", 2),
    ],
)
def test_a_bad_block_is_named_with_its_line(text, line):
    with pytest.raises(BadFrontmatter) as caught:
        split_frontmatter(text)
    assert caught.value.line == line


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Read, Grep", ("Read", "Grep")),
        ("Read Bash(git add:*)", ("Read", "Bash(git add:*)")),
        (["Read", "Bash(git log *)"], ("Read", "Bash(git log *)")),
        (None, ()),
        ("", ()),
    ],
)
def test_lists_are_written_in_many_ways(value, expected):
    assert parse_word_list(value) == expected


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [
        ("yes", False, True),
        (True, False, True),
        ("off", True, False),
        (None, True, True),
        (None, False, False),
        (0, True, False),
        ("maybe", False, False),
    ],
)
def test_yes_and_no_have_many_spellings(value, default, expected):
    assert parse_bool(value, default=default) is expected
