"""`handaxe permissions`: what was allowed for good, since when, and how it is taken back."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import handaxe
from handaxe.contract.decision import Allow, Remember


def run(*words):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", "permissions", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def listed(project) -> list[dict]:
    return json.loads(run("--json", "--root", str(project)).stdout)


async def allow_for(project, remember: Remember, rule: str) -> None:
    async def on_ask(request):
        return Allow(by="user", remember=remember, rules=(rule,))

    async with handaxe.Session(project, on_ask=on_ask) as session:
        assert (await session.call("Write", file_path="new.txt", content="x")).ok


@pytest.mark.proves("PM-3")
@pytest.mark.parametrize(("remember", "source"), [("project", "local"), ("always", "user")])
async def test_an_answer_is_listed_with_its_date_and_can_be_taken_back(project, remember, source):
    before = time.time()
    await allow_for(project, remember, "Edit(new.txt)")
    (rule,) = listed(project)
    assert (rule["rule"], rule["behaviour"], rule["source"]) == ("Edit(new.txt)", "allow", source)
    assert before <= rule["at"] <= time.time()
    shown = run("--root", str(project)).stdout
    assert time.strftime("%Y-%m-%d", time.localtime(before)) in shown
    assert f"{rule['file']}:{rule['line']}" in shown

    gone = run("revoke", "Edit(new.txt)", "--root", str(project))
    assert gone.returncode == 0
    assert rule["file"] in gone.stderr
    assert listed(project) == []
    async with handaxe.Session(project) as session:
        assert (await session.call("Write", file_path="other.txt", content="x")).code == (
            "permission.asked"
        )


async def test_a_rule_given_again_after_it_was_taken_back_has_its_new_date(project):
    await allow_for(project, "project", "Edit(new.txt)")
    (first,) = listed(project)
    assert run("revoke", "Edit(new.txt)", "--root", str(project)).returncode == 0
    (project / "new.txt").unlink()
    await allow_for(project, "project", "Edit(new.txt)")
    (second,) = listed(project)
    assert second["at"] > first["at"]


def test_rules_written_by_hand_have_no_date_and_those_of_other_programs_are_left_alone(project):
    own = Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('{"permissions": {"deny": ["Bash(x)"], "allow": ["Bash(make)", "Bash(ls)"]}}')
    shared = Path(os.environ["CLAUDE_CONFIG_DIR"], "settings.json")
    shared.parent.mkdir(parents=True, exist_ok=True)
    shared.write_text('{"permissions": {"allow": ["Bash(npm test)"]}}')
    rules = listed(project)
    assert [rule["behaviour"] for rule in rules] == ["deny", "allow", "allow", "allow"]
    assert {rule["at"] for rule in rules} == {None}
    assert "by hand" in run("--root", str(project)).stdout

    done = run("revoke", "Bash(make)", "--json", "--root", str(project))
    assert json.loads(done.stdout) == {"rule": "Bash(make)", "removed_from": [str(own)]}
    kept = json.loads(own.read_text())["permissions"]
    assert kept == {"deny": ["Bash(x)"], "allow": ["Bash(ls)"]}

    refused = run("revoke", "Bash(npm test)", "--root", str(project))
    assert refused.returncode == 2
    assert str(shared) in refused.stderr
    assert "npm test" in shared.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("revoke",), "required: RULE"),
        (("revoke", "Bash(nothing:*)"), "lists the rules"),
        (("revoke", "Bash(mak)"), "Did you mean Bash(make)?"),
        (("--root", "/nowhere/at/all"), "is not a directory"),
    ],
)
def test_what_cannot_be_done_is_said(project, words, told):
    own = Path(os.environ["HANDAXE_CONFIG_HOME"], "settings.json")
    own.parent.mkdir(parents=True, exist_ok=True)
    own.write_text('{"permissions": {"allow": ["Bash(make)"], "deny": ["Bash(rm:*)"]}}')
    root = () if "--root" in words else ("--root", str(project))
    done = run(*words, *root)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Bash(make)" in own.read_text()


async def test_an_answer_leaves_the_other_rules_of_its_file_where_they_are(project):
    local = project / ".handaxe/settings.local.json"
    local.parent.mkdir()
    local.write_text('{"permissions": {"allow": ["Bash(rm:*)"]}}')
    await allow_for(project, "project", "Edit(new.txt)")
    allowed = json.loads(local.read_text())["permissions"]["allow"]
    assert allowed == ["Bash(rm:*)", "Edit(new.txt)"]
    # The folder is not trusted, so only what the user said counts.
    assert [rule["rule"] for rule in listed(project)] == ["Edit(new.txt)"]
