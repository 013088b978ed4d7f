"""Ordinary read-only commands pass without a prompt."""
# pyright: basic

from __future__ import annotations

from pathlib import Path

from reference import decision

COMMANDS = [
    line
    for line in (Path(__file__).parent / "ordinary.txt").read_text("utf-8").splitlines()
    if line
]


def test_at_least_98_percent_of_ordinary_commands_pass(record_property):
    asked = [command for command in COMMANDS if decision(command).verdict != "allow"]
    rate = 1 - len(asked) / len(COMMANDS)
    record_property("pass_rate", f"{rate:.4f} of {len(COMMANDS)}")
    assert len(COMMANDS) >= 300
    assert rate >= 0.98, asked
