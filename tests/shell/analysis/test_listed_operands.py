"""Names that a listing gives to xargs: which pipelines are proven, and which names stop them."""

from __future__ import annotations

import shlex
import subprocess

import pytest

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.programs.listed_operands import (
    ListedOperands,
    find_listed_name_problem,
    prove_listed_operands,
)
from handaxe.shell.analysis.programs.operands import ProofContext
from handaxe.shell.analysis.programs.options import NotProven
from handaxe.shell.analysis.walker import ShellState

SETTING = ProofContext("/repo", "/home/dev", working_dirs=("/repo",))
STATE = ShellState(frozenset({"/repo"}), {})

PROVEN = [
    ("find . -name '*.py' -print0", "xargs -0 grep -n x"),
    ("find src -type f", "xargs wc -l"),
    ("find . -name '*.py' -print", "xargs grep some_function"),
    ("find . -type f -print0", "xargs -0 -n 1 -P 4 head -5"),
    ("find . -type f", "xargs -d '\\n' ls -l"),
    ("find . -type f", r"xargs -d '\n' -r stat -c %s"),
    ("git ls-files", "xargs wc -l"),
    ("git ls-files -z", "xargs -0 grep -l x"),
    ("git ls-files -z '*.py'", "xargs -0 cat"),
    ("git ls-files -o --exclude-standard", "xargs ls -la"),
    ("rg -l x", "xargs cat"),
    ("rg -l0 x src", "xargs -0 sed -n '1,5p'"),
    ("rg --files -g '*.py'", "xargs wc -l"),
    ("fd -e py", "xargs wc -l"),
    ("fd -0 -e py", "xargs -0r head"),
    ("fdfind -t f x src", "xargs du -h"),
    ("find . -name '*.json'", "xargs jq .name"),
    ("find . -type f", "xargs -n 1 echo"),
    ("find . -type f", "xargs -n1 basename"),
    ("find . -type f -print0", "xargs --null sha256sum"),
]
REFUSED = [
    ("find . -type f", "xargs"),
    ("find . -type f", "xargs rm"),
    ("find . -type f", "xargs -0 cat"),
    ("find . -type f -print0", "xargs cat"),
    ("find . -type f -print0", "xargs -0 -d '\\n' cat"),
    ("find . -type f", "xargs -d , cat"),
    ("find . -type f", "xargs -I{} cat {}"),
    ("find . -type f", "xargs -t cat"),
    ("find . -type f", "xargs -a list cat"),
    ("find . -type f", "xargs -L 1 cat"),
    ("find . -type f", "xargs --arg-file=list cat"),
    ("find . -printf '%p\\n'", "xargs cat"),
    ("find . -ls", "xargs cat"),
    ("find . -print -print0", "xargs cat"),
    ("ls", "xargs cat"),
    ("cat list", "xargs cat"),
    ("echo a b", "xargs cat"),
    ("git ls-files -s", "xargs cat"),
    ("git ls-files --full-name", "xargs cat"),
    ("git ls-files --format=%(path)", "xargs cat"),
    ("git log --name-only", "xargs cat"),
    ("rg x", "xargs cat"),
    ("rg -lc x", "xargs cat"),
    ("rg -l --color=always x", "xargs cat"),
    ("fd -x cat", "xargs cat"),
    ("fd --format x", "xargs cat"),
    ("fd -c always x", "xargs cat"),
    ("find . -type f", "xargs sort -o out"),
    ("find . -type f", "xargs uniq"),
    ("find . -type f", "xargs xxd"),
    ("find . -type f", "xargs grep"),
    ("find . -type f", "xargs grep -f"),
    ("find . -type f", "xargs jq"),
    ("find . -type f", "xargs sed -n"),
    ("find . -type f", "xargs awk"),
    ("find . -type f", "xargs head -n"),
    ("find . -type f", "xargs date -r"),
    ("find . -type f", "xargs strings"),
    ("find . -type f", "xargs sh -c 'cat $0'"),
    ("find . -type f", "xargs sed -i s/a/b/"),
    ("find . -type f", "xargs git log --"),
    ("find . -type f", "xargs env cat"),
    ("find . -type f", "xargs test -f"),
    ("find . -type f", "xargs wc --files0-from"),
    ("find . -type f", "xargs unzip -l"),
]


def _fields(text: str) -> list[Field]:
    return [Field("known", word, word) for word in shlex.split(text)]


@pytest.mark.parametrize(("producer", "xargs"), PROVEN)
def test_a_listing_of_names_for_a_program_that_reads_them_is_proven(producer, xargs):
    found = prove_listed_operands(_fields(producer), _fields(xargs), STATE, SETTING)
    assert list(found.producer_argv) == shlex.split(producer)
    assert found.null_separated is ("-0" in xargs or "--null" in xargs)
    assert found.line_separated is ("-d" in xargs)
    assert found.cwd == "/repo"


@pytest.mark.parametrize(("producer", "xargs"), REFUSED)
def test_any_other_listing_or_consumer_is_refused(producer, xargs):
    with pytest.raises(NotProven):
        prove_listed_operands(_fields(producer), _fields(xargs), STATE, SETTING)


@pytest.mark.parametrize("place", ["producer", "xargs"])
def test_a_word_that_is_not_literal_is_refused(place):
    words = {"producer": _fields("find . -name x"), "xargs": _fields("xargs grep x")}
    for kind in ("unknown", "glob"):
        words[place][-1] = Field(kind, "", "$x", single=False)
        with pytest.raises(NotProven):
            prove_listed_operands(words["producer"], words["xargs"], STATE, SETTING)


def test_the_directory_of_the_listing_must_be_known():
    state = ShellState(frozenset({"/repo", "/repo/src"}), {})
    with pytest.raises(NotProven):
        prove_listed_operands(_fields("find ."), _fields("xargs cat"), state, SETTING)


NAMES = ["a b", "a'b", 'a"b', "a\\b", "a\tb", "a\nb", "a\x7f", "\x1b[1m"]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_that_xargs_would_split_or_unquote_is_a_problem(name):
    plain = ListedOperands(("find", "."), ("cat",), False, False, "/repo")
    assert find_listed_name_problem(["a.txt", name], plain)
    assert find_listed_name_problem(["a.txt", "ä.txt", "src/b-c.py"], plain) is None


def test_a_separator_of_its_own_lets_a_name_hold_blanks_but_never_begin_with_a_dash():
    null = ListedOperands(("find", "."), ("cat",), True, False, "/repo")
    line = ListedOperands(("find", "."), ("cat",), False, True, "/repo")
    assert find_listed_name_problem(["a b", "a'b", "a\nb"], null) is None
    assert find_listed_name_problem(["a b", "a'b"], line) is None
    assert find_listed_name_problem(["a\tb"], line)
    for operands in (null, line):
        assert find_listed_name_problem(["x", "-rf"], operands)


def test_names_without_a_problem_reach_the_program_unchanged(tmp_path):
    """In real xargs: what is let through is what the consumer gets."""
    names = ["a.txt", "ä ö.txt", "it's", 'say "x"', "back\\slash", "tab\tname", "-n", "plain-1"]
    for null, line, option, end in (
        (True, False, ["-0"], "\0"),
        (False, True, ["-d", "\\n"], "\n"),
        (False, False, [], "\n"),
    ):
        operands = ListedOperands(("find",), ("printf",), null, line, str(tmp_path))
        kept = [name for name in names if find_listed_name_problem([name], operands) is None]
        ran = subprocess.run(
            ["xargs", *option, "printf", "%s\\0"],
            input="".join(name + end for name in kept).encode(),
            capture_output=True,
            check=True,
        )
        assert ran.stdout.decode().split("\0")[:-1] == kept
        assert kept
