"""`handaxe undo`, `history`, `gc` and `du`: other processes, after the session has ended."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe.frontends.cli.main import run
from handaxe.text.paths import quote_path


def handaxe(*words, cwd, stdin=None):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        timeout=60,
        check=False,
        text=True,
    )


def write(project, name: str, content: str) -> None:
    out = handaxe(
        "call", "Write", f"file_path={name}", f"content={content}",
        "--permission-mode", "acceptEdits", cwd=project,
    )  # fmt: skip
    assert out.returncode == 0, out.stdout


def run_calls(project, *calls, mode="acceptEdits") -> list[dict]:
    lines = "".join(json.dumps(call) + "\n" for call in calls)
    out = handaxe("run", "--permission-mode", mode, cwd=project, stdin=lines)
    return [json.loads(line) for line in out.stdout.splitlines()]


@pytest.fixture
def edited(project):
    """A project in which one session has edited one file and made another."""
    (project / "a.txt").write_text("one\ntwo\n")
    results = run_calls(
        project,
        {"id": "r", "tool": "Read", "input": {"file_path": "a.txt"}},
        {"id": "e", "tool": "Edit",
         "input": {"file_path": "a.txt", "old_string": "two", "new_string": "2"}},
        {"id": "w", "tool": "Write", "input": {"file_path": "d/b.txt", "content": "new\n"}},
    )  # fmt: skip
    assert [result["ok"] for result in results] == [True, True, True]
    return project


def test_undo_puts_back_the_last_change_of_an_ended_session(edited):
    out = handaxe("undo", cwd=edited)
    assert (out.returncode, out.stderr) == (0, "")
    assert out.stdout.startswith("Undid: Write w.\nremoved: ")
    assert not (edited / "d").exists()
    assert handaxe("undo", cwd=edited).returncode == 0
    assert (edited / "a.txt").read_text() == "one\ntwo\n"
    out = handaxe("undo", cwd=edited)
    assert (out.returncode, out.stdout) == (1, "")
    assert "No change is left to undo" in out.stderr


def test_an_ended_session_stays_ended_when_it_is_undone(edited):
    assert handaxe("undo", cwd=edited).returncode == 0
    assert "not closed" not in handaxe("sessions", cwd=edited).stdout


def test_undo_with_an_id_goes_back_to_before_that_call(edited):
    out = handaxe("undo", "e", "--json", cwd=edited)
    result = json.loads(out.stdout)
    assert (result["ok"], result["data"]["calls"]) == (True, ["w", "e"])
    assert (edited / "a.txt").read_text() == "one\ntwo\n"
    assert handaxe("undo", "--redo", cwd=edited).returncode == 0
    assert (edited / "d" / "b.txt").read_text() == "new\n"
    assert handaxe("undo", "e", "--only", cwd=edited).returncode == 0
    assert (edited / "a.txt").read_text() == "one\ntwo\n"
    assert (edited / "d" / "b.txt").exists()


def test_a_conflict_shows_the_change_and_how_to_force(edited):
    (edited / "a.txt").write_text("one\nby hand \x1b[31m\n")
    out = handaxe("undo", "e", cwd=edited)
    assert (out.returncode, out.stdout) == (1, "")
    assert "-2\n+by hand \\x1b[31m" in out.stderr
    assert "handaxe undo --force" in out.stderr
    assert (edited / "d" / "b.txt").exists()
    assert handaxe("undo", "e", "--force", cwd=edited).returncode == 0
    assert (edited / "a.txt").read_text() == "one\ntwo\n"


def test_undo_walks_back_over_sessions(project):
    for number in range(3):
        write(project, f"{number}.txt", "x")
    for left in (["0.txt", "1.txt"], ["0.txt"], []):
        assert handaxe("undo", cwd=project).returncode == 0
        assert sorted(os.listdir(project)) == left
    for back in (["0.txt"], ["0.txt", "1.txt"]):
        assert handaxe("undo", "--redo", cwd=project).returncode == 0
        assert sorted(os.listdir(project)) == back


def test_undo_finds_the_project_from_a_directory_below_it(edited):
    (edited / "sub").mkdir()
    assert handaxe("undo", cwd=edited / "sub").returncode == 0
    assert not (edited / "d").exists()


def test_history_lists_calls_with_what_they_changed(edited):
    handaxe("undo", cwd=edited)
    out = handaxe("history", cwd=edited)
    assert f"modified  {edited}/a.txt" in out.stdout
    assert f"created   {edited}/d/b.txt" in out.stdout
    assert "w  Write  (undone)" in out.stdout
    assert "took back w" in out.stdout
    assert "-two\n+2\n" in handaxe("history", "--diff", cwd=edited).stdout


def test_history_is_json_on_request(edited):
    out = handaxe("history", "--json", "--diff", cwd=edited)
    [session] = json.loads(out.stdout)["sessions"]
    edit, made = session["calls"]
    assert (edit["callId"], edit["tool"], edit["undone"]) == ("e", "Edit", False)
    assert made["changes"][0]["change"] == "created"
    assert "+new" in made["changes"][0]["diff"]


@pytest.mark.parametrize("command", ["undo", "history"])
def test_a_project_nobody_changed_is_a_usage_error(project, command):
    out = handaxe(command, cwd=project)
    assert (out.returncode, out.stdout) == (2, "")
    assert "No session has changed a file" in out.stderr
    assert handaxe(command, "--session-id", "nope", cwd=project).returncode == 2


def test_an_unknown_call_fails_and_names_known_ones(edited):
    out = handaxe("undo", "nope", cwd=edited)
    assert out.returncode == 1
    assert "e, w" in out.stderr


def test_gc_and_du_tell_numbers(edited):
    used = json.loads(handaxe("du", "--json", cwd=edited).stdout)
    assert used["checkpoints"] > 0
    assert used["total"] == sum(used[k] for k in ("events", "results", "checkpoints", "other"))
    assert "checkpoints" in handaxe("du", cwd=edited).stdout
    tight = '{"undo": {"max_bytes": 0}}'
    told = json.loads(handaxe("gc", "--dry-run", "--json", "--settings", tight, cwd=edited).stdout)
    assert (told["calls"], told["journal_parts"]) == (2, 1)
    assert "2 calls" in handaxe("gc", "--settings", tight, cwd=edited).stdout
    assert json.loads(handaxe("du", "--json", cwd=edited).stdout)["checkpoints"] < 1000


def test_gc_removes_what_commands_and_agents_left_and_du_counts_it(project):
    sessions = Path(os.environ["HANDAXE_HOME"], "sessions")
    old = {
        "outputs": sessions / "old" / "tasks" / "a.output",
        "temporary": sessions / "old" / "tmp" / "deep" / "a",
        "results": sessions / "old" / "agents" / "a1" / "results" / "a.txt",
    }
    new = {kind: Path(str(path).replace("/old/", "/new/")) for kind, path in old.items()}
    for path in (*old.values(), *new.values()):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x" * 1000)
    for path in [*(sessions / "old").rglob("*"), sessions / "old"]:
        os.utime(path, (0, 0))

    def used():
        told = json.loads(handaxe("du", "--json", cwd=project).stdout)
        return {kind: told[kind] for kind in old}

    before = used()
    assert all(before[kind] >= 2000 for kind in old)
    told = json.loads(handaxe("gc", "--json", "--dry-run", cwd=project).stdout)
    assert told["results"] == {"count": 1, "bytes": 1000}
    assert told["leavings"] == {"count": 2, "bytes": 2000}
    assert used() == before
    shown = handaxe("gc", cwd=project).stdout
    assert "1,000 bytes freed: stored results." in shown
    assert "2,000 bytes freed: output and temporary files." in shown
    assert [path.exists() for path in old.values()] == [False] * 3
    assert [path.exists() for path in new.values()] == [True] * 3
    # What is new goes only where there is too much of it, and not while it may be in use.
    handaxe("gc", "--settings", '{"shell": {"max_kept_bytes": 0}}', cwd=project)
    assert [path.exists() for path in new.values()] == [True] * 3


def vanishing(look, ending: str, at: int):
    """A look at files just before which, for the `at`-th time, another process takes one away."""
    left = [at]

    def look_too_late(path, *rest, **more):
        if isinstance(path, str | os.PathLike) and str(path).endswith(ending):
            left[0] -= 1
            if left[0] == 0:
                subprocess.run(["rm", "-rf", str(path)], check=True)
        return look(path, *rest, **more)

    return look_too_late


@pytest.mark.parametrize("command", ["gc", "du"])
@pytest.mark.parametrize("ending", ["/a.txt", "/results", "journal.jsonl", ".found", ".output"])
def test_what_vanishes_while_it_is_counted_is_no_error(
    edited, monkeypatch, capsys, command, ending
):
    home = Path(os.environ["HANDAXE_HOME"])
    (session,) = (home / "sessions").glob("*/")
    left = session / "results" / "a.txt", session / "tasks" / "a.output", home / "in-place/a.found"
    journal = (session / "journal.jsonl").read_bytes()
    monkeypatch.chdir(edited)
    for at in range(1, 6):
        (session / "journal.jsonl").write_bytes(journal)
        for path in left:
            path.parent.mkdir(exist_ok=True)
            path.write_text("x")
            os.utime(path, (0, 0))
            os.utime(path.parent, (0, 0))
        with monkeypatch.context() as patched:
            patched.setattr(os, "stat", vanishing(os.stat, ending, at))
            patched.setattr(os, "lstat", vanishing(os.lstat, ending, at))
            assert run([command, "--json"]) == 0, capsys.readouterr()


def test_nothing_but_the_files_put_back_is_touched(edited):
    subprocess.run(["git", "init", "-q"], cwd=edited, check=True)
    subprocess.run(["git", "add", "."], cwd=edited, check=True)
    before = {p: p.stat().st_mtime_ns for p in (edited / ".git").rglob("*") if p.is_file()}
    assert handaxe("undo", "e", cwd=edited).returncode == 0
    after = {p: p.stat().st_mtime_ns for p in (edited / ".git").rglob("*") if p.is_file()}
    assert after == before
    assert sorted(os.listdir(edited)) == [".git", "a.txt"]


@pytest.mark.parametrize("name", ["\udcff.txt", "two\nlines.txt", "bell\a.txt"])
def test_a_path_with_an_odd_name_is_taken_as_it_is_and_as_it_is_shown(project, name):
    shown = quote_path(name)
    wanted = {"file_path": shown, "content": "x\n"}
    [made] = run_calls(project, {"id": "w", "tool": "Write", "input": wanted})
    assert made["ok"], made
    history = handaxe("history", cwd=project).stdout
    whole = quote_path(f"{project}/{name}")
    assert f"    created   {whole}\n" in history
    for path in (name, shown, whole):
        assert (project / name).exists()
        out = handaxe("undo", "w", "--path", path, cwd=project)
        assert out.returncode == 0, out.stderr
        assert f"removed: {whole}\n" in out.stdout
        assert not (project / name).exists()
        out = handaxe("undo", "--redo", "--path", path, cwd=project)
        assert out.returncode == 0, out.stderr
