"""A foreign command put at any token boundary of a harmless one is never allowed.

A sample here; `scripts/check --long mutation` takes every command.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from reference import decision

ORDINARY = (Path(__file__).parent / "ordinary.txt").read_text("utf-8").splitlines()
EVERY = [line for line in ORDINARY if line and not re.search(r"['\"#\\<]|\[\[|^x=", line)]
"""Without those in which an inserted text would be a part of something harmless."""
COMMANDS = EVERY[::12]
# Inside $( ) or ` ` a token boundary is also one inside the substitution, which is the point.
INSERTS = [
    ";x",
    ";x;",
    " $(x) ",
    " >x ",
    "\nx\n",
    "&x ",
    " `x` ",
    " | x ",
    " <(x) ",
    "|| x ",
    " && x ",
    " |& x ",
]
EVALUATED = [
    " <<< $(x) ",
    " <<< `x` ",
    " ${x@P} ",
    ' "${x@P}" ',
    " $((a[$(x)])) ",
    " $((x)) ",
    " ${a[$(x)]} ",
    " ${!x} ",
]


OPENERS = ["`", "$(", "'", '"', ")", "\0", "\r", "\x1b", "\u200b", "\u202e"]


def _mutants(command: str, insert: str):
    for found in re.finditer(r"^|(?<=\S)(?=\s)|(?<=\s)(?=\S)|$", command):
        yield command[: found.start()] + insert + command[found.start() :]


def find_allowed(commands: list[str], insert: str) -> list[str]:
    """Mutants that pass although nothing foreign may."""
    return [
        mutant
        for command in commands
        for mutant in _mutants(command, insert)
        if decision(mutant).verdict == "allow"
    ]


@pytest.mark.parametrize("insert", [*INSERTS, *EVALUATED, *OPENERS])
def test_an_inserted_text_that_runs_or_hides_something_is_never_allowed(insert):
    assert find_allowed(COMMANDS, insert) == []


def test_a_denied_program_is_found_at_every_boundary():
    missed = [
        mutant
        for command in COMMANDS[::2]
        for insert in (";rm y;", " $(rm y) ", "\nrm y\n", " <(rm y) ", " `rm y` ", " |& rm y ")
        for mutant in _mutants(command, insert)
        if decision(mutant, allow=["Bash"], deny=["Bash(rm:*)"]).verdict == "allow"
    ]
    assert missed == []


@pytest.mark.parametrize("insert", [" ${x@P} ", ' "${x@P}" ', " $((a[$(x)])) ", " ${!x} "])
def test_text_that_is_evaluated_again_is_outside_every_content_rule(insert):
    """Bash runs what such a text holds, whatever the rule's program does with the words (C19)."""
    allowed = []
    for command in COMMANDS[::2]:
        program = command.split()[0]
        for mutant in _mutants(command, insert):
            if decision(mutant, allow=[f"Bash({program}:*)"]).verdict == "allow":
                allowed.append(mutant)
    assert allowed == []


@pytest.mark.parametrize("insert", [" ${x@P} ", " $((a[$(x)])) ", " $((x)) ", " ${!x} "])
def test_text_that_is_evaluated_again_asks_beside_a_deny_rule(insert):
    """It is a program that cannot be known (C19)."""
    allowed = [
        mutant
        for command in COMMANDS[::2]
        for mutant in _mutants(command, insert)
        if decision(mutant, allow=["Bash"], deny=["Bash(rm:*)"]).verdict == "allow"
    ]
    assert allowed == []
