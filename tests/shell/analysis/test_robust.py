"""decide() never raises, stays fast, and no limit weakens a deny."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

from grammar import Maker
from hypothesis import given, settings
from hypothesis import strategies as st
from reference import decision
from tests.counted_work import grows_in_proportion

from handaxe.shell.analysis.parser.cross_check import count_by_tree_sitter
from handaxe.shell.analysis.parser.parse import parse

PIECES = [
    "$(",
    "${",
    "`",
    "'",
    '"',
    "<<",
    "((",
    "[[",
    "{",
    "}",
    ")",
    "case x in",
    "for",
    "\\",
    "\n",
    "a",
    "|",
    "&",
]


@given(st.text(max_size=200))
@settings(max_examples=300)
def test_any_text_gets_a_verdict(text):
    assert decision(text).verdict in ("allow", "ask", "deny")


@given(st.binary(max_size=200))
@settings(max_examples=300)
def test_any_bytes_get_a_verdict(data):
    for encoding, errors in (("latin-1", "strict"), ("utf-8", "surrogateescape")):
        found = decision(data.decode(encoding, errors), allow=["Bash(ls:*)"], deny=["Bash(rm:*)"])
        assert found.verdict in ("allow", "ask", "deny")


@given(st.lists(st.sampled_from(PIECES), max_size=40))
@settings(max_examples=300)
def test_any_heap_of_syntax_gets_a_verdict(pieces):
    assert decision(" ".join(pieces)).verdict in ("allow", "ask", "deny")
    assert decision("".join(pieces)).verdict in ("allow", "ask", "deny")


# With another layout of the memory each of these texts ends the process or does not, so a child
# runs all of them several times.
READ_BEYOND_A_TABLE = """
from handaxe.shell.analysis.parser.cross_check import count_by_tree_sitter
for code in range(0x100, 0x110000, 0x3FFD):
    for brace in ("echo {", "echo {1", "echo {1..", "a={", "{", "echo {1..2"):
        count_by_tree_sitter(brace + chr(code) + "..3}")
"""


def test_no_character_after_a_brace_ends_the_process():
    for _ in range(6):
        child = subprocess.run([sys.executable, "-c", READ_BEYOND_A_TABLE], check=False)
        assert child.returncode == 0


def test_characters_of_any_script_are_parts_of_words_to_the_second_reader():
    for text in (
        "echo {\u4e2d}; ls",
        "echo \u4fee\u590d '{\U0001f600' && ls",
        "ls \u043a\u043e\u0434 | wc",
    ):
        assert count_by_tree_sitter(text) == 2
        assert decision(text).verdict == "allow", text


def test_the_parser_accepts_only_what_bash_accepts():
    wrong: list[str] = []
    for seed in range(400):
        command = Maker(seed).command()
        if parse(command).problems or decision(command).verdict != "allow":
            continue
        checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
        if checked.returncode or checked.stderr:
            wrong.append(command)
    assert wrong == []


def test_length_and_number_of_parts_never_weaken_a_deny():
    deny: dict[str, Any] = {"allow": ["Bash"], "deny": ["Bash(rm:*)"]}
    for command in (
        "ls;" * 60 + "rm x",
        "ls;" * 5_000 + "rm x",
        "true && " * 3_000 + "rm x",
        "echo " + "a" * 200_000 + "; rm x",
        "( " * 35 + "rm x" + " )" * 35,
        "( " * 500 + "rm x" + " )" * 500,
        "echo " + "$(echo " * 200 + "$(rm x)" + ")" * 200,
        "timeout 5 " * 400 + "rm x",
        "env " * 2_000 + "rm x",
        "bash -c " * 30 + "'rm x'",
        "eval " * 500 + "rm x",
        "echo 'a" + "b" * 5_000 + "; rm x",
    ):
        assert decision(command, **deny).verdict == "deny", command[:40]


def test_a_denied_redirection_is_found_beyond_the_limit_of_parts():
    command = "ls;" * 200 + "ls > locked/a"
    assert decision(command, allow=["Bash"], deny_edit=["/repo/locked"]).verdict == "deny"


def test_deep_nesting_over_several_shells_is_decided():
    inner = "( " * 35 + "rm x" + " )" * 35
    middle = "( " * 35 + f'bash -c "{inner}"' + " )" * 35
    outer = "( " * 35 + f"bash -c '{middle}'" + " )" * 35
    assert decision(outer, allow=["Bash"], deny=["Bash(rm:*)"]).verdict == "deny"


def test_too_long_or_too_deep_is_never_allowed():
    for command in ("ls " + "a " * 60_000, "ls;" * 500, "( " * 60 + "ls" + " )" * 60):
        assert decision(command).verdict == "ask"


def test_noise_takes_no_more_steps_than_its_length_explains():
    chooser = random.Random(1)
    alphabet = "abc ls;|&()<>$`'\"\\{}[]*?#!=~\n\t"
    noise = ["".join(chooser.choice(alphabet) for _ in range(4100)) for _ in range(12)]

    def decide_all(size):
        return lambda: [decision(text[:size], deny=["Bash(rm:*)"]) for text in noise]

    decision("ls")
    assert grows_in_proportion(decide_all, 410)
