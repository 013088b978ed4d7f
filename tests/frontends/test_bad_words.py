"""Commands with words, directories and streams that do not fit: told in a sentence, nothing done."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


def handaxe(*words: str, cwd: Path | str, stdin: str = "", **variables: str):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *words],
        input=stdin.encode(),
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **variables},
        timeout=60,
        check=False,
    )


def write(project: Path | str, name: str, session: str) -> None:
    out = handaxe(
        "call", "Write", f"file_path={name}", "content=x", "--session-id", session,
        "--permission-mode", "acceptEdits", cwd=project,
    )  # fmt: skip
    assert out.returncode == 0, out.stderr


ENCODINGS = [
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1"},
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
]


@pytest.mark.parametrize("variables", ENCODINGS)
def test_json_is_json_whatever_the_terminal_speaks(project: Path, variables: dict[str, str]):
    (project / "a.txt").write_text("é → 😀\n", encoding="utf-8")
    line = json.dumps({"id": "ä😀", "tool": "Read", "input": {"file_path": "a.txt"}})
    ran = handaxe("run", "--session-id", "s", cwd=project, stdin=line, **variables)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert json.loads(ran.stdout)["id"] == "ä😀"
    assert json.loads(ran.stdout)["data"]["file"]["content"] == "é → 😀"
    called = handaxe("call", "Read", "file_path=a.txt", "--json", cwd=project, **variables)
    assert json.loads(called.stdout)["data"]["file"]["content"] == "é → 😀"
    exported = handaxe("sessions", "export", "s", cwd=project, **variables)
    events = [json.loads(event) for event in exported.stdout.splitlines()]
    assert "ä😀" in {event.get("call_id") for event in events}


@pytest.mark.parametrize("command", ["call", "sessions", "doctor"])
def test_a_terminal_of_ascii_ends_no_command(project: Path, command: str):
    (project / "a.txt").write_text("é\n", encoding="utf-8")
    words = {"call": ("Read", "file_path=a.txt")}.get(command, ())
    assert handaxe(command, *words, cwd=project, **ENCODINGS[2]).returncode == 0


@pytest.fixture
def odd(project: Path) -> str:
    """A project whose name is no UTF-8, and would steer a terminal."""
    path = os.fsencode(project) + b"/\xff\x1b[31m"
    os.mkdir(path)
    return os.fsdecode(path)


def test_a_change_in_a_project_whose_name_is_not_utf8_is_made_and_undone(odd: str):
    write(odd, "a.txt", "s")
    listed = handaxe("history", "--json", cwd=odd)
    assert [one["session_id"] for one in json.loads(listed.stdout)["sessions"]] == ["s"]
    assert handaxe("undo", cwd=odd).returncode == 0
    assert os.listdir(odd) == []


@pytest.mark.parametrize(
    "words",
    [("config",), ("config", "path"), ("sessions",), ("history",), ("stats",), ("doctor",),
     ("permissions",)],
)  # fmt: skip
def test_names_that_are_not_utf8_are_told_in_json(odd: str, words: tuple[str, ...]):
    write(odd, "a.txt", "s")
    out = handaxe(*words, "--json", cwd=odd)
    assert out.returncode == 0, out.stderr
    json.loads(out.stdout)


def test_a_folder_whose_name_is_not_utf8_cannot_be_trusted(odd: str):
    out = handaxe("trust", cwd=odd)
    assert out.returncode == 2
    assert b"not UTF-8" in out.stderr


@pytest.mark.parametrize(
    "words", [("sessions",), ("sessions", "show", "s"), ("undo", "--root", "?")]
)
def test_no_name_of_a_directory_steers_the_terminal(odd: str, words: tuple[str, ...]):
    write(odd, "a.txt", "s")
    out = handaxe(*[odd + "/a.txt" if word == "?" else word for word in words], cwd=odd)
    assert b"\x1b" not in out.stdout + out.stderr


def in_a_directory_that_is_gone(project: Path, *words: str) -> "subprocess.CompletedProcess[bytes]":
    gone = project / "gone"
    gone.mkdir()
    script = 'cd "$1" && rmdir "$1" && shift && exec "$@"'
    command = ["bash", "-c", script, "-", str(gone), sys.executable, "-m", "handaxe", *words]
    return subprocess.run(command, capture_output=True, check=False, timeout=60)


def test_doctor_works_in_a_directory_that_is_gone_and_names_it(project: Path):
    out = in_a_directory_that_is_gone(project, "doctor", "--json")
    found = json.loads(out.stdout)
    assert out.returncode == 0
    assert found["problem.directory"]["standing"] == "no"
    assert found["git.version"]["standing"] == "ok"


def test_a_directory_that_is_gone_is_told(project: Path):
    for words in (("call", "Read", "file_path=a"), ("undo",), ("gc", "--dry-run")):
        out = in_a_directory_that_is_gone(project, *words)
        assert (out.returncode, out.stdout) == (2, b"")
        assert (
            out.stderr
            == b"handaxe: The current directory no longer exists. Change to another one.\n"
        )


@pytest.mark.parametrize("columns", ["wide", "1.5", "0", "²"])
def test_help_is_there_however_wide_the_terminal_is_said_to_be(project: Path, columns: str):
    assert handaxe("call", "--help", cwd=project, COLUMNS=columns).returncode == 0


@pytest.mark.parametrize("root", ["", "a.txt"])
@pytest.mark.parametrize("command", ["undo", "history", "stats", "permissions", "config"])
def test_what_is_no_directory_is_not_taken_for_the_project(project: Path, command: str, root: str):
    write(project, "a.txt", "s")
    out = handaxe(command, "--root", root, cwd=project)
    assert (out.returncode, out.stdout) == (2, b"")
    assert (project / "a.txt").exists()


@pytest.mark.parametrize("words", [("",), ("", "--revoke")])
def test_an_empty_name_trusts_nothing(project: Path, words: tuple[str, ...]):
    assert handaxe("trust", *words, cwd=project).returncode == 2
    assert handaxe("trust", "--list", cwd=project).stdout == b""


def test_a_project_that_was_removed_can_be_named_for_undo(project: Path):
    inner = project / "inner"
    inner.mkdir()
    write(inner, "a.txt", "s")
    (inner / "a.txt").unlink()
    inner.rmdir()
    assert b"a.txt" in handaxe("history", "--root", str(inner), cwd=project).stdout


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "list", "s"),
        ("permissions", "list", "Read"),
        ("explain", "ls", "--tool", "Read", "--input", "{}"),
        ("explain", "ls", "--input", "{}"),
        ("explain", "--tool", "", "--input", "{}"),
        ("explain", "ls", "--jsonl"),
        ("config", "list", "--settings", ""),
        ("config", "list", "read.line_format"),
        ("config", "path", "read.line_format"),
        ("config", "get", "read.line_format", "tab"),
        ("config", "unset", "read.line_format", "tab"),
        ("stats", "--days", "nan"),
        ("stats", "--days", "-1"),
    ],
)
def test_words_that_would_not_count_are_refused(project: Path, words: tuple[str, ...]):
    out = handaxe(*words, cwd=project)
    assert (out.returncode, out.stdout) == (2, b"")
    assert out.stderr.startswith(b"handaxe: ")


def test_a_session_at_work_elsewhere_is_not_deleted(project: Path):
    write(project, "a.txt", "s")
    command = [sys.executable, "-m", "handaxe", "run", "--session-id", "s"]
    with subprocess.Popen(
        command, cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdin.write(b'{"id": "1", "tool": "Read", "input": {"file_path": "a.txt"}}\n')
        other.stdin.flush()
        other.stdout.readline()
        out = handaxe("sessions", "delete", "s", cwd=project)
        assert (out.returncode, out.stdout) == (2, b"")
        assert b"is open in process" in out.stderr
        other.stdin.close()
    assert b"a.txt" in handaxe("history", cwd=project).stdout
    assert handaxe("sessions", "delete", "s", cwd=project).returncode == 0


def test_a_deleted_session_leaves_no_tasks(project: Path):
    task = ("subject=Sweep", "description=the floor", "--session-id", "s")
    assert handaxe("call", "TaskCreate", *task, cwd=project).returncode == 0
    assert handaxe("sessions", "delete", "s", cwd=project).returncode == 0
    listed = handaxe("call", "TaskList", "--session-id", "s", cwd=project)
    assert b"Sweep" not in listed.stdout


def test_fork_and_delete_print_json_where_it_is_asked_for(project: Path):
    write(project, "a.txt", "s")
    forked = json.loads(handaxe("sessions", "fork", "s", "--json", cwd=project).stdout)
    assert forked["forked_from"] == "s"
    deleted = handaxe("sessions", "delete", forked["session_id"], "--json", cwd=project)
    assert json.loads(deleted.stdout) == {"session_id": forked["session_id"], "deleted": True}
