"""A deny rule stops what might run its program, and nothing that only names it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from reference import decision

HERE = Path(__file__).parent


def groups(name: str) -> list[dict]:
    return tomllib.loads((HERE / name).read_text("utf-8"))["group"]


def spelled(group: dict):
    for word in group["words"]:
        for command in group["commands"]:
            yield word, command.replace("WORD", word)


BENIGN = groups("benign_words.toml")


@pytest.mark.parametrize("group", BENIGN, ids=lambda group: group["name"])
def test_a_command_that_only_names_a_denied_program_is_allowed(group):
    asked = []
    for word, command in spelled(group):
        judged = decision(command, allow=group.get("allow", ()), deny=[f"Bash({word}:*)"])
        if judged.verdict != "allow":
            asked.append((command, judged.verdict, judged.reason))
    assert asked == []


def test_at_least_300_benign_commands_contain_a_denied_word():
    commands = {command for group in BENIGN for _, command in spelled(group)}
    assert len(commands) >= 300


@pytest.mark.parametrize("group", BENIGN, ids=lambda group: group["name"])
def test_a_benign_command_is_allowed_without_the_deny_rule_too(group):
    """Otherwise its question would say nothing about the deny rule."""
    asked = [
        command
        for _, command in spelled(group)
        if decision(command, allow=group.get("allow", ())).verdict != "allow"
    ]
    assert asked == []


HOSTILE = groups("hostile_words.toml")


@pytest.mark.parametrize("rule", ["Bash", "Bash(PROGRAM:*)", ""])
@pytest.mark.parametrize("group", HOSTILE, ids=lambda group: group["name"])
def test_a_command_that_might_run_a_denied_program_is_never_allowed(group, rule):
    allowed = []
    for word, command in spelled(group):
        rules = [rule.replace("PROGRAM", command.split()[0])] if rule else []
        if decision(command, allow=rules, deny=[f"Bash({word}:*)"]).verdict == "allow":
            allowed.append(command)
    assert allowed == []


@pytest.mark.parametrize("group", BENIGN, ids=lambda group: group["name"])
def test_a_rule_for_the_whole_tool_does_not_change_what_is_benign(group):
    asked = []
    for word, command in spelled(group):
        judged = decision(command, allow=["Bash"], deny=[f"Bash({word}:*)"])
        if judged.verdict != "allow":
            asked.append((command, judged.verdict, judged.reason))
    assert asked == []
