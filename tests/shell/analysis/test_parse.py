"""The syntax model of commands."""

from __future__ import annotations

import pytest

from handaxe.shell.analysis.parser.parse import parse
from handaxe.shell.analysis.walker import walk


def texts(command: str) -> list[str]:
    return [
        part.text for part in walk(parse(command), "/repo", "/home/dev") if part.kind == "simple"
    ]


@pytest.mark.parametrize(
    ("command", "parts"),
    [
        ("a && b || c; d | e |& f & g\nh", ["a", "b", "c", "d", "e", "f", "g", "h"]),
        ("(a; b) && { c; }", ["a", "b", "c"]),
        ("! a", ["a"]),
        ("time a", ["a"]),
        ("if a; then b; elif c; then d; else e; fi", ["a", "b", "c", "d", "e"]),
        ("for x in 1 2; do a $x; done", ["a $x"]),
        ("for x do a; done", ["a"]),
        ("while a; do b; done", ["a", "b"]),
        ("case x in (a|b) c;; d) e;& *) f;;& esac", ["c", "e", "f"]),
        ("f() { a; }", ["a"]),
        ("function f { a; }", ["a"]),
        ("coproc a b", ["a b"]),
        ("a $(b `c`) <(d)", ["a $(b `c`) <(d)", "b `c`", "c", "d"]),
        ("a `b \\`c\\``", ["a `b \\`c\\``", "b `c`", "c"]),
        ("a <<E\n$(b)\n`c`\nE\nd", ["a <<E", "b", "c", "d"]),
        ("a <<'E'\n$(b)\nE\nd", ["a <<'E'", "d"]),
        ("a <<E\nfoo\\\nE\n$(b)\nE", ["a <<E", "b"]),
        ("a <<E1 <<E2\n$(b)\nE1\n$(c)\nE2", ["a <<E1 <<E2", "b", "c"]),
        ('a "${x:-$(b)}" $((1 + $(c)))', ['a "${x:-$(b)}" $((1 + $(c)))', "b", "c"]),
        ("a 'b; c' \"d && e\" f\\;g # h; i", ["a 'b; c' \"d && e\" f\\;g"]),
        ("a \\\n b", ["a \\\n b"]),
        ("x=1 y=$(b) a", ["x=1 y=$(b) a", "b"]),
        ("[[ -f $(b) ]] && a", ["b", "a"]),
    ],
)
def test_a_command_is_split_into_its_parts(command, parts):
    assert parse(command).problems == []
    assert texts(command) == parts


@pytest.mark.parametrize(
    ("word", "literal"),
    [
        ("a'b'\"c\"\\d", "abcd"),
        ("$'\\x41\\n\\u00e9'", "A\né"),
        ("a\\\nb", "ab"),
        ("''", ""),
        ("$x", None),
        ("a*", None),
        ("~", None),
        ("{a,b}", None),
        ("{a}", "{a}"),
        ("a[", "a["),
        ("[a]", None),
        ("$'a\\0b'", None),
    ],
)
def test_a_word_has_a_literal_value_only_if_the_text_says_it(word, literal):
    script = parse(f"x {word}")
    parts = walk(script, "/repo", "/home/dev")
    found = parts[0].node.words[1].literal if not script.problems else None
    assert found == literal


@pytest.mark.parametrize(
    "command",
    [
        "$[1]",
        'echo $"a"',
        "echo ${ ls; }",
        "echo $((ls) | x)",
        "t\\\nime ls",
        "cat <<E",
        "a <<E $(\n)\nE\n",
        'echo "${x:-\'}"',
        "x <<$y\n$y\n",
        "[[ a ]]] b",
        "[[ -n# a ]]",
        "ls $'\\0'",
        "echo $(( $(case a in a) ls;; esac) + 1 ))",
    ],
)
def test_what_can_be_read_in_two_ways_is_a_problem(command):
    assert parse(command).problems
