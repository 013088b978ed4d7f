"""The decision table: every command in table.toml gets the verdict its group names."""
# pyright: basic

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from reference import decision

TABLE = tomllib.loads((Path(__file__).parent / "table.toml").read_text("utf-8"))["group"]
KEYS = ("allow", "ask", "deny", "deny_read", "deny_edit", "git_clean")


def _wrong(group) -> list[str]:
    wrong: list[str] = []
    extra = {key: group[key] for key in KEYS if key in group}
    for command in group["commands"]:
        found = decision(command, group.get("mode", "default"), **extra)
        wanted = group["verdict"]
        right = found.verdict != "allow" if wanted == "not_allow" else found.verdict == wanted
        if not right:
            wrong.append(f"{found.verdict} {command!r}: {found.reason}")
    return wrong


@pytest.mark.parametrize("group", TABLE, ids=lambda group: group["title"])
def test_every_command_gets_the_verdict_of_its_group(group):
    assert _wrong(group) == []


def test_the_table_is_large():
    assert sum(len(group["commands"]) for group in TABLE) >= 500
