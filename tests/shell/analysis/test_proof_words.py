"""Every word of a read-only proof counts: one that may become several is never passed over."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from reference import decision

from handaxe.shell.analysis.program_tables import load_read_only_programs

HERE = Path(__file__).parent
LINES = [
    line
    for name in ("ordinary.txt", "everyday.txt")
    for line in (HERE / name).read_text("utf-8").splitlines()
    if line
    and not re.search(r"[|&;<>$`(){}#!~\n]|^#|^(for|while|if|case|cd|time|timeout|nice) ", line)
]
ANY_WORDS = {"echo", "printf", "expr", "basename", "dirname"}
"""Programs that only print or compute, whatever words they are given."""


def _commands() -> list[list[str]]:
    found: list[list[str]] = []
    for line in LINES:
        words = re.findall(r"(?:'[^']*'|\"[^\"]*\"|\\.|[^\s'\"\\])+", line)
        if len(words) > 1 and decision(line).verdict == "allow":
            found.append(words)
    return found


COMMANDS = _commands()[::5]


def _replaced(word: str) -> list[tuple[str, str, int]]:
    return [
        (words[0], " ".join([*words[:at], word, *words[at + 1 :]]), at)
        for words in COMMANDS
        for at in range(1, len(words))
    ]


SKIPPED = [
    "jq -n --arg a WORD '$a'",
    "jq -n --arg WORD b .",
    "jq -n --argjson a WORD '$a'",
    "jq --indent WORD . data.json",
    "ps -p WORD",
    "ps -o WORD",
    "ps -u WORD -f",
    "read -d WORD line",
    "read -t WORD line",
    "timeout -k WORD 5 ls",
    "timeout -s WORD 5 ls",
    "nice -n WORD ls",
    "test -f WORD",
    "[ a = WORD ]",
    "find . -name WORD",
    "find . -maxdepth WORD -name x",
    "find . -newer WORD",
    "git log -n WORD",
    "git log --author WORD",
    "git stash WORD",
    "git config --get WORD",
    "tar -tf WORD",
    "strings -n WORD program",
    "xargs -n WORD",
    "head -n WORD a.txt",
    "sed -e WORD a.txt",
    "awk -F WORD '{print $1}' a.txt",
    "cut -d WORD -f1 a.txt",
    "date -d WORD",
    "command -v WORD",
]
"""A command for each way in which a word is taken without being looked up as a file."""


@pytest.mark.parametrize("word", ["$(echo 1 2)", "$v", "*", "a*", "$@", '"$@"', "${v[@]}"])
@pytest.mark.parametrize("command", SKIPPED)
def test_a_skipped_word_is_one_word(command, word):
    assert decision(command.replace("WORD", word)).verdict != "allow"


def test_there_are_many_commands_to_change():
    assert len(COMMANDS) > 80


@pytest.mark.parametrize("word", ["$(echo a b)", "$v", "--x=$v", "${v:-a b}"])
def test_no_word_may_be_replaced_by_one_that_becomes_several(word):
    allowed = [
        command
        for program, command, _ in _replaced(word)
        if program not in ANY_WORDS and decision(command).verdict == "allow"
    ]
    assert allowed == []


def test_an_unquoted_glob_passes_only_where_the_table_lets_it():
    tables = load_read_only_programs()
    allowed = [
        command
        for program, command, _ in _replaced("*.txt")
        if program not in ANY_WORDS
        and getattr(tables.get(program), "globs", "") != "any"
        and decision(command).verdict == "allow"
    ]
    assert allowed == []


def test_a_quoted_variable_never_stands_for_a_path_or_an_option():
    allowed = []
    for program, command, at in _replaced('"$v"'):
        if program in ANY_WORDS or decision(command).verdict != "allow":
            continue
        before = shlex.split(command)[at - 1]
        # As the value of an option, the pattern of a search or a name it opens nothing.
        if at > 1 and not before.startswith("-") and program in ("cat", "head", "ls", "wc", "sort"):
            allowed.append(command)
    assert allowed == []
