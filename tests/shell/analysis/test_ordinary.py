"""Ordinary read-only commands pass without a prompt."""

from __future__ import annotations

from pathlib import Path

import pytest
from reference import decision

HERE = Path(__file__).parent


def commands(name: str) -> list[str]:
    lines = (HERE / name).read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("# ")]


@pytest.mark.parametrize("name", ["ordinary.txt", "everyday.txt"])
def test_at_least_98_percent_of_ordinary_commands_pass(name, record_property):
    """Two lists by two hands; the second was written down before the tables were looked at."""
    listed = commands(name)
    asked = [command for command in listed if decision(command).verdict != "allow"]
    rate = 1 - len(asked) / len(listed)
    record_property("pass_rate", f"{rate:.4f} of {len(listed)}")
    assert len(listed) >= 300
    assert rate >= 0.98, asked


@pytest.mark.parametrize("command", commands("everyday_asks.txt"))
def test_what_only_looks_to_a_person_asks_where_a_clause_says_so(command):
    assert decision(command).verdict == "ask"
