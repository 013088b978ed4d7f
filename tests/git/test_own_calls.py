"""Every git that handaxe starts goes through one module, which bounds it."""

import ast
import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.git.repositories import SLOTS, Canary, git, make_repository
from tests.waiting import until

import handaxe
from handaxe import Session
from handaxe.agent.subagents.git_worktree import NoWorktree, close_worktree, open_worktree
from handaxe.git.command import (
    GitFailed,
    await_git,
    find_git,
    make_command,
    make_object_command,
    run_git,
)
from handaxe.git.discovery import find_repository
from handaxe.shell.exec.preflight_scan import find_tracked_env_file, list_names

SOURCE = Path(handaxe.__file__).parent
THE_ONE = "git/command.py"
OWN_CALLS = {
    "agent/subagents/git_worktree.py": {"await_git", "make_command"},
    "app/doctor/checks.py": {"find_git"},
    "shell/exec/preflight_scan.py": {"make_command", "run_git"},
    "undo/snapshot/git_index.py": {"make_object_command", "run_git"},
    "undo/snapshot/git_objects.py": {"make_object_command", "start_git"},
}
"""Who starts git, and how; whoever is added here goes through the same module."""
STARTERS = {
    "create_subprocess_exec", "create_subprocess_shell", "Popen", "run", "call", "check_call",
    "check_output", "posix_spawn", "posix_spawnp", "spawn", "which", "execvp", "execv", "execvpe",
    "system", "popen",
}  # fmt: skip


def modules(*words: str) -> Iterator[tuple[str, ast.Module]]:
    """All modules of the product that hold one of some words, but for the one."""
    for path in SOURCE.rglob("*.py"):
        text, name = path.read_text(), str(path.relative_to(SOURCE))
        if name != THE_ONE and any(word in text for word in words):
            yield name, ast.parse(text)


def named(call: ast.Call) -> str:
    return getattr(call.func, "attr", None) or getattr(call.func, "id", "")


def is_git(node: ast.AST) -> bool:
    text = node.value if isinstance(node, ast.Constant) else None
    return isinstance(text, str) and (text == "git" or text.startswith(("git ", "/usr/bin/git")))


def starts_git(tree: ast.Module) -> bool:
    """Whether a list of words begins with git, or a function that starts programs is given it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and named(node) in STARTERS and any(map(is_git, node.args)):
            return True
        if isinstance(node, ast.List) and node.elts and is_git(node.elts[0]):
            return True
    return False


@pytest.mark.proves("SH-6")
def test_git_is_started_in_one_module_only():
    texts = ('"git"', '"git ', "/usr/bin/git")
    assert [path for path, tree in modules(*texts) if starts_git(tree)] == []


@pytest.mark.proves("SH-6")
def test_every_own_call_of_git_is_listed():
    wanted = {
        "await_git",
        "find_git",
        "make_command",
        "make_object_command",
        "run_git",
        "start_git",
    }
    found = {
        path: calls
        for path, tree in modules(*wanted)
        if (calls := wanted & {named(n) for n in ast.walk(tree) if isinstance(n, ast.Call)})
    }
    assert found == OWN_CALLS


@pytest.mark.parametrize(
    "text",
    [
        'subprocess.run(["git", "status"])',
        'subprocess.run(["git", *words], cwd=place)',
        'asyncio.create_subprocess_exec("git", "status")',
        'shutil.which("git")',
        'os.system("git status")',
        'argv = ["git", "log"]',
    ],
)
def test_the_look_for_other_calls_finds_them(text: str):
    assert starts_git(ast.parse(text))


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git first on the search path that notes how it is started, and then is git."""
    real, notes = find_git(()), tmp_path / "notes"
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "git"
    program.write_text(
        f'#!/bin/sh\n{{ printf "%s " "$@"; env | grep ^GIT_ | tr "\\n" " "; echo; }} >> {notes}\n'
        f'exec {real} "$@"\n'
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return notes


def is_env(name: str) -> bool:
    return name == ".env"


@pytest.mark.proves("SH-6")
async def test_own_calls_start_git_so_that_it_runs_nothing(recorded: Path, tmp_path: Path):
    place = make_repository(tmp_path / "place")
    recorded.unlink(missing_ok=True)
    made = await open_worktree(str(place), "w")
    await close_worktree(made.path, made.branch, made.base)
    assert list_names(("git", "ls-files"), str(place), null=False) == [".gitattributes", "a"]
    assert find_tracked_env_file(str(place), is_env, past=True) == ""
    run_git(make_object_command(str(place / ".git"), "ls-files"), timeout_s=30)
    lines = recorded.read_text().splitlines()
    assert len(lines) > 8
    for line in lines:
        for setting in (
            "-c core.hooksPath=/dev/null", "-c core.fsmonitor=false",
            "-c safe.bareRepository=explicit", "-c protocol.ext.allow=never",
            "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_ALLOW_PROTOCOL=none",
        ):  # fmt: skip
            assert setting in line


@pytest.mark.proves("SH-6")
@pytest.mark.parametrize("entry", [".", "", "{place}", "{place}/bin"])
def test_a_git_of_the_project_is_not_git(
    entry: str, tmp_path: Path, canary: Canary, monkeypatch: pytest.MonkeyPatch
):
    place = make_repository(tmp_path / "place")
    (place / "bin").mkdir()
    for folder in (place, place / "bin"):
        (folder / "git").symlink_to(canary.program)
    monkeypatch.chdir(place)
    monkeypatch.setenv("PATH", f"{entry.format(place=place)}:{os.environ['PATH']}")
    assert list_names(("git", "ls-files", "-z"), str(place), null=True) == [".gitattributes", "a"]
    assert not canary.has_run


@pytest.fixture
def canary(tmp_path: Path) -> Canary:
    return Canary(tmp_path / "canary")


def test_variables_of_the_environment_choose_no_repository(
    tmp_path: Path, canary: Canary, monkeypatch: pytest.MonkeyPatch
):
    place, other = make_repository(tmp_path / "place"), make_repository(tmp_path / "other")
    (place / ".env").touch()
    git(place, "add", ".env")
    canary.set(other / ".git/config")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", str(canary.program))
    assert find_tracked_env_file(str(place), is_env, past=True) == ".env"
    assert not canary.has_run


@pytest.mark.parametrize("name", ["plain", "with:colon"])
def test_git_finds_no_other_repository_than_the_one_that_was_looked_at(name: str, tmp_path: Path):
    around = tmp_path / name
    around.mkdir()
    make_repository(around)
    inner = make_repository(around / "inner")
    (inner / "sub").mkdir()
    found = find_repository(str(inner / "sub"))
    assert found is not None
    command = make_command(found, "rev-parse", "--show-toplevel", directory=str(inner / "sub"))
    assert run_git(command, timeout_s=30).decode().strip() == str(inner)
    (inner / ".git/HEAD").write_text("broken\n")
    with pytest.raises(GitFailed, match="not a git repository"):
        run_git(command, timeout_s=30)


def slow_filter(place: Path, marker: Path) -> None:
    git(place, "config", "filter.x.smudge", f"sh -c 'echo $$ > {marker}; exec sleep 1000'")
    git(place, "config", "filter.x.required", "true")


def is_dead(pid: str) -> bool:
    shown = subprocess.run(["ps", "-o", "stat=", "-p", pid], check=False, capture_output=True)
    return not shown.stdout.strip() or shown.stdout.startswith(b"Z")


@pytest.mark.parametrize("end", ["deadline", "cancel"])
async def test_what_git_has_started_ends_with_it(end: str, tmp_path: Path):
    place, marker = make_repository(tmp_path / "place"), tmp_path / "marker"
    slow_filter(place, marker)
    found = find_repository(str(place))
    assert found is not None
    command = make_command(found, "checkout", "--", "a", runs_programs=True)
    running = asyncio.ensure_future(await_git(command, timeout_s=0.5 if end == "deadline" else 60))
    if end == "deadline":
        with pytest.raises(GitFailed, match="took too long"):
            await running
    else:
        await until(lambda: marker.exists() and marker.read_text().endswith("\n"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    if marker.exists():
        await until(lambda: is_dead(marker.read_text().strip()))


def test_git_that_prints_too_much_is_ended(tmp_path: Path):
    place = make_repository(tmp_path / "place")
    found = find_repository(str(place))
    assert found is not None
    with pytest.raises(GitFailed, match="printed too much"):
        run_git(make_command(found, "log", "--stat"), timeout_s=30, max_bytes=20)


async def test_keeping_a_tree_for_undo_runs_nothing(tmp_path: Path, canary: Canary):
    place = make_repository(tmp_path / "place")
    for number in range(60):
        (place / f"f{number}").write_text(f"{number}\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "more")
    for slot in SLOTS:
        canary.set(place / ".git/config", slot)
    async with Session(place, allow=["Bash"]) as session:
        result = await session.call("Bash", command='python3 -c \'open("f1", "w")\'')
        assert result.ok, result.text
        undone = await session.undo()
    assert (place / "f1").read_text() == "1\n", undone
    assert not canary.has_run


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
async def test_a_repository_of_somebody_else_is_not_used(tmp_path: Path):
    place = make_repository(tmp_path / "place")
    for path in (place, *place.rglob("*")):
        os.chown(path, 65534, 65534, follow_symlinks=False)
    with pytest.raises(NoWorktree, match=r"safe\.directory|dubious|unsafe"):
        await open_worktree(str(place), "w")
    assert not (place / ".claude").exists()
