"""Commands of git and a working tree with everything in it: undo restores every byte."""

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from tests.undo.commanding import open_session, run, whole_tree

from handaxe.undo.snapshot.snapshot import SnapshotLimits, TreeSnapshot

COMMANDS = (
    "git reset -q --hard",
    "git clean -qfdx",
    "git checkout -q -- .",
    "git stash -q -u",
    "git checkout -q -b other && git rm -q tracked.txt && git commit -qm gone",
    "git commit -qam all",
    "git rebase -q --root --exec 'echo x >> tracked.txt; git commit -qa --amend --no-edit' || true",
    "git gc -q --prune=now",
    "rm -rf .git",
    "git reset -q --hard && git clean -qfdx && rm -rf .git && rm -rf -- *",
)


@pytest.fixture
def repository(project: Path) -> Path:
    def git(*arguments: str) -> None:
        subprocess.run(["git", *arguments], cwd=project, check=True)

    git("init", "-q", "-b", "main")
    for name, value in {"user.name": "n", "user.email": "n@e", "gc.auto": "0"}.items():
        git("config", name, value)
    (project / "sub").mkdir()
    (project / "tracked.txt").write_text("committed\n")
    (project / "sub/other.txt").write_text("committed too\n" * 50)
    (project / "deleted.txt").write_text("to be deleted\n")
    (project / ".gitignore").write_text("ignored/\n*.log\n")
    git("add", "-A")
    git("commit", "-qm", "first")
    (project / "tracked.txt").write_text("changed, not committed\n")
    (project / "sub/other.txt").write_text("staged\n")
    git("add", "sub/other.txt")
    (project / "deleted.txt").unlink()
    (project / "untracked.txt").write_text("nobody has this\n")
    (project / "ignored/deep").mkdir(parents=True)
    (project / "ignored/deep/build.o").write_bytes(bytes(range(256)) * 500)
    (project / "debug.log").write_text("log\n")
    return project


@pytest.mark.proves("SH-8")
@pytest.mark.parametrize("command", COMMANDS)
async def test_one_undo_restores_every_byte_in_a_repository(repository, tmp_path, command):
    before = whole_tree(repository)
    async with open_session(repository, tmp_path / "home") as session:
        await run(session, repository, command)
        after = whole_tree(repository)
        assert after != before
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(repository) == before
        assert (await session.undo(redo=True)).ok
        assert whole_tree(repository) == after
        assert (await session.undo()).ok
        assert whole_tree(repository) == before
    status = _git(repository, "status", "--porcelain", "--ignored")
    assert status.splitlines() == [
        " D deleted.txt",
        "M  sub/other.txt",
        " M tracked.txt",
        "?? untracked.txt",
        "!! debug.log",
        "!! ignored/",
    ]
    assert _git(repository, "fsck", "--full", "--strict") == ""


async def test_git_s_objects_stay_the_files_they_are_when_only_their_bits_are_put_back(
    repository, tmp_path
):
    def find_objects() -> dict[str, tuple[int, int]]:
        found = (path.stat() for path in (repository / ".git/objects").glob("*/*"))
        return {str(info.st_ino): (info.st_mode, info.st_size) for info in found}

    before = find_objects()
    async with open_session(repository, tmp_path / "home") as session:
        await run(session, repository, "chmod -R u+w,go-r .git/objects")
        assert find_objects() != before
        undone = await session.undo()
        assert undone.ok, undone.text
    assert find_objects() == before


async def test_keeping_a_tree_touches_neither_index_nor_refs_nor_stash(repository, tmp_path):
    before = {
        path: (path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in (repository / ".git").rglob("*")
        if "objects" not in path.parts
    }
    async with open_session(repository, tmp_path / "home") as session:
        await run(session, repository, "true")
        await run(session, repository, "echo x > untracked.txt")
        assert (await session.undo()).ok
    assert before == {
        path: (path.lstat().st_mtime_ns, path.lstat().st_ino)
        for path in (repository / ".git").rglob("*")
        if "objects" not in path.parts
    }


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", "--no-optional-locks", *arguments],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


async def test_files_that_git_has_are_not_kept_twice(project, tmp_path):
    for number in range(200):
        (project / f"{number}.txt").write_text(f"{number}\n" * 500)
    for command in ("init -q", "add -A", "-c user.name=n -c user.email=n@e commit -qm all"):
        _git(project, *command.split())
    size_bytes = sum(file.stat().st_size for file in project.glob("*.txt"))
    settled = 1_700_000_000
    for file in project.glob("*.txt"):
        os.utime(file, (settled, settled))
    # The index knows the new times, and is younger than they are; changes of inodes stay young
    # for two seconds, in which nothing is proved by them.
    _git(project, "update-index", "--refresh")
    await asyncio.sleep(2.1)
    before = whole_tree(project)
    async with open_session(project, tmp_path / "home") as session:
        await run(session, project, "rm -rf .git; rm -f 1*.txt; echo more >> 2.txt; touch 3.txt")
        [store] = (tmp_path / "home/snapshots").iterdir()
        kept = sum(pack.stat().st_size for pack in store.glob("*.pack"))
        assert kept < size_bytes / 5
        changed = {Path(change.file_path).name for change in session.history()[0].changes}
        assert "2.txt" in changed
        assert "3.txt" not in changed
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(project) == before


@pytest.mark.parametrize("attribute", ["ident", "filter=swap", "working-tree-encoding=UTF-16"])
async def test_files_that_git_stores_otherwise_are_kept_as_they_are(project, tmp_path, attribute):
    for number in range(100):
        (project / f"{number}.txt").write_text(f"$Id$ {number:04}\n")
    _git(project, "init", "-q")
    _git(project, "config", "filter.swap.clean", "tr a-z A-Z")
    _git(project, "config", "filter.swap.smudge", "tr A-Z a-z")
    (project / ".gitattributes").write_text(f"*.txt {attribute}\n")
    if attribute.endswith("UTF-16"):
        for file in project.glob("*.txt"):
            file.write_text(file.read_text(), encoding="utf-16")
    _git(project, "add", "-A")
    await asyncio.sleep(2.1)
    _git(project, "update-index", "--refresh")
    before = whole_tree(project)
    async with open_session(project, tmp_path / "home") as session:
        await run(session, project, "rm -f *.txt")
        assert (await session.undo()).ok
        assert whole_tree(project) == before


async def test_objects_that_a_clone_shares_are_not_looked_at_for_every_command(
    repository, tmp_path
):
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--local", repository, clone], check=True)
    snapshot = TreeSnapshot(tmp_path / "home", "s", str(clone), SnapshotLimits())
    try:
        for _ in range(2):
            snapshot.begin([str(clone)])
            assert snapshot._tree.linked == set()
            snapshot.end()
    finally:
        snapshot.close()
