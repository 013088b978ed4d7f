"""Hostile spellings: none of them runs without a rule or a yes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from reference import decision

COMMANDS: list[str] = json.loads((Path(__file__).parent / "hostile.json").read_text("utf-8"))


@pytest.mark.proves("PM-3")
def test_none_of_them_is_allowed():
    assert len(COMMANDS) >= 700
    assert [command for command in COMMANDS if decision(command).verdict == "allow"] == []


def test_rules_for_harmless_programs_let_none_of_them_touch_anything():
    """Broad rules for programs that look do not cover what rides on them."""
    rules = [f"Bash({name}:*)" for name in ("ls", "cat", "echo", "find", "sort", "git log", "head")]
    riding = [command for command in COMMANDS if "touch" in command]
    assert len(riding) >= 150
    assert [c for c in riding if decision(c, allow=rules).verdict == "allow"] == []


def test_a_deny_rule_is_not_weakened_by_any_of_them():
    """With everything else allowed, a command that names the program is at least asked about."""
    naming = [command for command in COMMANDS if "touch" in command]
    verdicts = {c: decision(c, allow=["Bash"], deny=["Bash(touch:*)"]).verdict for c in naming}
    assert [c for c, verdict in verdicts.items() if verdict == "allow"] == []
