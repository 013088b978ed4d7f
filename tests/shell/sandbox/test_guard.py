"""What is saved before a command is put back exactly, or it is said that it is not."""

import os
import stat
import subprocess

import msgspec
import pytest

from handaxe.process.temp_dir import TempDirectory
from handaxe.shell.sandbox import protected_files as guards
from handaxe.shell.sandbox import saved_states
from handaxe.shell.sandbox.backend import find_landlock_weakness
from handaxe.shell.sandbox.protected_files import CannotSave, ProtectedPathGuard, recover
from handaxe.shell.sandbox.readonly_paths import ProtectionFinder
from handaxe.shell.sandbox.sandbox_policy import SandboxPolicy

ORDINARY = 1000


@pytest.fixture
def policy(tmp_path):
    (tmp_path / "root/.git").mkdir(parents=True)
    (tmp_path / "root/.git/config").write_text("mine")
    return SandboxPolicy(
        roots=(f"{tmp_path}/root",),
        temp_directory=f"{tmp_path}/temp",
        aside_directory=f"{tmp_path}/aside",
        protected_names=frozenset({".git", ".vscode"}),
    )


def begin(policy, ledger=None, **more):
    finder = ProtectionFinder()
    found = finder.find(policy)
    return ProtectedPathGuard(
        (*found.fixed, *found.watched, *found.missing),
        policy,
        ledger=ledger,
        directories=found.anchored,
        names=found.names,
        look_again=lambda: finder.names(policy),
        **more,
    )


def test_what_a_killed_process_saved_is_put_back_by_the_next(policy, tmp_path):
    config, ledger = tmp_path / "root/.git/config", str(tmp_path / "ledger")
    (tmp_path / "root/\udcff").mkdir()
    config.chmod(0o640)
    child = os.fork()
    if child == 0:
        begin(policy, ledger)
        config.write_text("evil")
        config.chmod(0o777)
        (tmp_path / "root/sub/.vscode").mkdir(parents=True)
        (tmp_path / "root/sub/.vscode/tasks.json").write_text("evil")
        os.kill(os.getpid(), 9)
    os.waitpid(child, 0)
    alive = begin(policy, ledger)
    told = recover(ledger)
    assert config.read_text() == "mine"
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert not (tmp_path / "root/sub/.vscode").exists()
    assert len(told) == 2
    # What a living process saved is left to it.
    assert recover(ledger) == ()
    assert len(list((tmp_path / "ledger").iterdir())) == 1
    alive.restore()


def test_commands_side_by_side_never_bring_back_what_was_taken_back(policy, tmp_path):
    config = tmp_path / "root/.git/config"
    first = begin(policy)
    config.write_text("evil")
    (tmp_path / "root/.vscode").mkdir()
    (tmp_path / "root/.vscode/tasks.json").write_text("evil")
    second = begin(policy)
    assert len(first.restore()) == 2
    assert second.restore() == ()
    assert config.read_text() == "mine"
    assert not (tmp_path / "root/.vscode").exists()


def test_nothing_is_claimed_that_was_not_put_back(policy, tmp_path, monkeypatch):
    config = tmp_path / "root/.git/config"
    config.write_text("mine, and long")
    guard = begin(policy)
    config.write_text("evil")
    monkeypatch.setattr(
        saved_states, "copy_content", lambda source, target: os.write(target, os.read(source, 4))
    )
    (told,) = guard.restore()
    assert "could not be restored" in told
    assert "was restored" not in told


def test_what_changed_and_cannot_be_read_is_not_thought_the_same(policy, tmp_path):
    """The same size, and its times set back: only the kernel's own time tells."""
    config = tmp_path / "root/.git/config"
    os.utime(config, (1, 1))
    guard = begin(policy)
    config.write_text("evil")
    os.utime(config, (1, 1))
    (told,) = guard.restore()
    assert "was restored" in told
    assert config.read_text() == "mine"


def test_what_is_too_large_or_cannot_be_read_is_not_begun_with(policy, tmp_path, monkeypatch):
    os.mkfifo(tmp_path / "root/.vscode")
    with pytest.raises(CannotSave, match=r"\.vscode .* not all of it can be read"):
        begin(policy, must_be_whole=True)
    monkeypatch.setattr(saved_states, "MOST_BYTES", 3)
    with pytest.raises(CannotSave, match=r"config .* too large"):
        begin(policy)
    assert not guards._active


def test_worktrees_in_something_protected_may_be_changed(policy, tmp_path):
    policy = msgspec.structs.replace(policy, protected_names=frozenset({".claude"}))
    claude = tmp_path / "root/.claude"
    work = claude / "worktrees/one"
    work.mkdir(parents=True)
    (claude / "settings.json").write_text("mine")
    for change in (lambda: None, lambda: (claude / "settings.json").write_text("evil")):
        guard = begin(policy)
        (work / "file").write_text("work")
        change()
        told = guard.restore()
        assert (claude / "settings.json").read_text() == "mine"
        assert (work / "file").read_text() == "work"
        assert sorted(os.listdir(claude)) == ["settings.json", "worktrees"]
    assert len(told) == 1


def test_in_a_cache_new_names_count_only_at_the_top(policy, tmp_path):
    policy = msgspec.structs.replace(policy, shallow_roots=policy.roots)
    guard = begin(policy)
    for place in (tmp_path / "root", tmp_path / "root/package"):
        (place / ".vscode").mkdir(parents=True)
        (place / ".vscode/tasks.json").touch()
    assert len(guard.restore()) == 1
    assert not (tmp_path / "root/.vscode").exists()
    assert (tmp_path / "root/package/.vscode/tasks.json").exists()


def test_an_older_landlock_has_to_be_asked_for():
    assert find_landlock_weakness(6) is None
    assert "sandbox.failIfWeak" in (find_landlock_weakness(5) or "")


@pytest.mark.skipif(os.getuid() != 0, reason="becomes an ordinary user")
def test_an_ordinary_user_puts_back_what_a_command_closed():
    with TempDirectory("sandbox", "/var/tmp") as scratch:
        top = scratch.path
        os.chmod(top, 0o755)
        os.mkdir(f"{top}/home")
        os.chown(f"{top}/home", ORDINARY, ORDINARY)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            os.setgroups([])
            os.setgid(ORDINARY)
            os.setuid(ORDINARY)
            os.write(writing, _closing(f"{top}/home").encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as said:
            told = said.read()
        os.waitpid(child, 0)
        assert told.startswith("fine"), told


def _closing(top: str) -> str:
    try:
        root = f"{top}/root"
        os.makedirs(f"{root}/.git/hooks")
        os.makedirs(f"{root}/sub/.vscode")
        for name in (".git/config", ".git/hooks/x", "sub/.vscode/tasks.json"):
            with open(f"{root}/{name}", "w") as file:
                file.write("mine")
        made = SandboxPolicy(
            roots=(root,),
            temp_directory=f"{top}/temp",
            aside_directory=f"{top}/aside",
            protected_names=frozenset({".git", ".vscode"}),
        )
        guard = begin(made, f"{top}/ledger")
        for name in (".git/config", ".git/hooks/x", "sub/.vscode/tasks.json"):
            with open(f"{root}/{name}", "w") as file:
                file.write("evil")
        os.makedirs(f"{root}/sub/new/.vscode")
        with open(f"{root}/sub/new/.vscode/tasks.json", "w") as file:
            file.write("evil")
        closed = "sub/new/.vscode sub/new sub/.vscode sub .git/config .git/hooks .git ."
        closed = f"chmod 000 {top}/ledger/*/* {top}/ledger/* {top}/ledger {top}/aside {closed}"
        subprocess.run(["sh", "-c", closed], cwd=root, check=False, capture_output=True)
        told = guard.restore()
        os.chmod(root, 0o755)
        found = subprocess.run(
            ["sh", "-c", "chmod 755 sub .git sub/new; cat .git/config .git/hooks/x sub/.vscode/*; ls -A sub/new"],
            cwd=root, check=False, capture_output=True, text=True,
        )  # fmt: skip
    except BaseException as error:  # noqa: BLE001 - told by the parent
        return f"bad {error!r}"
    is_fine = found.stdout == "mine" * 3 and not any("could not" in one for one in told)
    return f"{'fine' if is_fine else 'bad'} {found} {told}"
