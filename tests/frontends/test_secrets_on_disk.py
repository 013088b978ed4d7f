"""No secret of the environment lies in clear in the data directory, whatever printed it."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe.storage.home import find_data_home

TOKEN = "ghp_Zx81kQpLm2Zx81kQpLm2Zx81kQpLm2"
KEY = 'qu"ote\\Aa1\nsecond-line-Bb2\té'
SECRETS = {"GITHUB_TOKEN": TOKEN, "STRIPE_SECRET_KEY": KEY}
PASS = json.dumps({"shell": {"pass_variables": list(SECRETS)}})
SNAPSHOTS = ("snapshots", "blobs")


def run(*words, stdin="", cwd, umask=0o022):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **SECRETS},
        text=True,
        timeout=60,
        check=False,
        umask=umask,
    ).stdout


def bash(number, command, **more):
    line = {"id": f"call_{number}", "tool": "Bash", "input": {"command": command, **more}}
    return json.dumps(line) + "\n"


def holders(value: str) -> list[Path]:
    """The files below the data directory that hold a value, plain or inside JSON."""
    needles = {value.encode(), json.dumps(value)[1:-1].encode()}
    needles |= {line.encode() for line in value.splitlines()}
    needles.add(json.dumps(value, ensure_ascii=False)[1:-1].encode())
    files = [path for path in find_data_home().rglob("*") if path.is_file()]
    assert files
    return [path for path in files if any(needle in path.read_bytes() for needle in needles)]


@pytest.mark.proves("S14")
def test_an_approved_env_shows_and_leaves_no_secret(project):
    lines = (
        bash(1, "env; printenv")
        + bash(2, "seq 1 20000; env; seq 1 20000")
        + bash(3, "env", run_in_background=True)
        + bash(4, "echo [$GITHUB_TOKEN] ${#GITHUB_TOKEN}")
    )
    out = run("run", "--allowedTools", "Bash", "--session-id", "s", stdin=lines, cwd=project)
    results = [json.loads(line) for line in out.splitlines()]
    assert all(result["ok"] for result in results)
    assert "[] 0\n" in results[3]["text"]
    assert TOKEN not in out
    assert holders(TOKEN) == holders(KEY) == []


@pytest.mark.proves("S14")
def test_a_secret_that_is_passed_is_replaced_in_results_logs_and_output_files(project):
    python = "python3 -c 'import os, json; print(json.dumps(dict(os.environ)))'"
    lines = (
        bash(1, "env; printenv STRIPE_SECRET_KEY; declare -p GITHUB_TOKEN STRIPE_SECRET_KEY; set")
        + bash(2, f"seq 1 20000; env; {python}; seq 1 20000")
        + bash(3, "env; env >&2", run_in_background=True)
        + bash(4, python)
        + bash(5, "printf %s ${GITHUB_TOKEN:0:9}; sleep 0.3; printf '%s\\n' ${GITHUB_TOKEN:9}")
        + bash(6, f"echo {TOKEN}; false")
        + bash(7, "env; exit 3")
    )
    words = ("--allowedTools", "Bash", "--session-id", "s", "--settings", PASS)
    out = run("run", *words, stdin=lines, cwd=project)
    results = {result["id"]: result for result in map(json.loads, out.splitlines())}
    assert "GITHUB_TOKEN=[redacted: GITHUB_TOKEN]" in results["call_1"]["text"]
    assert "[redacted: STRIPE_SECRET_KEY]" in results["call_1"]["text"]
    assert results["call_5"]["text"].startswith("[redacted: GITHUB_TOKEN]\n")
    kept = Path(results["call_2"]["data"]["persistedOutputPath"]).read_text()
    assert "[redacted: GITHUB_TOKEN]" in kept
    assert not [value for value in (TOKEN, *KEY.splitlines()) if value in out]
    assert holders(TOKEN) == holders(KEY) == []
    # What was handed out is what the log holds.
    log = (find_data_home() / "sessions" / "s" / "events.jsonl").read_text()
    assert json.dumps(results["call_1"]["text"], ensure_ascii=False)[1:-1] in log


@pytest.mark.proves("S14")
def test_call_prints_the_same_redacted_result(project):
    words = ("call", "Bash", "command=env", "--json", "--allowedTools", "Bash", "--settings", PASS)
    result = json.loads(run(*words, cwd=project))
    assert "GITHUB_TOKEN=[redacted: GITHUB_TOKEN]\n" in result["text"]
    assert TOKEN not in json.dumps(result)
    assert holders(TOKEN) == []


@pytest.mark.proves("S14")
def test_only_what_undo_needs_holds_a_secret_of_a_file_and_nobody_else_can_read_it(project):
    (project / "a.txt").write_text(f"token {TOKEN}\n")
    edit = {"file_path": "a.txt", "old_string": "token", "new_string": "TOKEN"}
    lines = [
        {"id": "call_1", "tool": "Read", "input": {"file_path": "a.txt"}},
        {"id": "call_2", "tool": "Edit", "input": edit},
        {"id": "call_3", "tool": "Grep", "input": {"pattern": "ghp", "output_mode": "content"}},
        {"id": "call_4", "tool": "Write", "input": {"file_path": "b.txt", "content": TOKEN}},
        {"id": "call_5", "tool": "Bash", "input": {"command": "rm a.txt"}},
    ]
    stdin = "".join(json.dumps(line) + "\n" for line in lines)
    words = ("--permission-mode", "bypassPermissions", "--session-id", "s")
    out = run("run", *words, stdin=stdin, cwd=project, umask=0)
    assert TOKEN not in out
    assert "token [redacted: GITHUB_TOKEN]" in out
    assert (project / "b.txt").read_text() == TOKEN
    places = [path.relative_to(find_data_home()).parts for path in holders(TOKEN)]
    assert all(not set(SNAPSHOTS).isdisjoint(parts) for parts in places), places
    files = [path for path in find_data_home().rglob("*") if path.is_file() and path.stat().st_size]
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    # The file itself comes back byte for byte.
    run("undo", "--session-id", "s", cwd=project)
    assert (project / "a.txt").read_text() == f"TOKEN {TOKEN}\n"
