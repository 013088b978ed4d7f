"""Roots that are kept ahead of the first command: as good as kept by it, whatever comes between."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.holding import open_descriptors
from tests.undo import commanding
from tests.undo.commanding import (
    AHEAD,
    BEGIN_AHEAD,
    is_preparing,
    open_session,
    prepare,
    run,
    whole_tree,
)
from tests.undo.test_shell_undo import COMMANDS
from tests.undo.test_shell_undo_crash import COMMAND, killed
from tests.undo.test_shell_undo_properties import IN_MEMORY, operations
from tests.waiting import blocked_until, is_alive, until

from handaxe.app.session import get_parts
from handaxe.undo.prune import prune
from handaxe.undo.snapshot import prewarm as preparation
from handaxe.undo.snapshot.snapshot import SnapshotLimits, TreeSnapshot

OUTSIDERS = {
    "nothing": "true",
    "same size, same time": "touch -r a.txt ref; printf 'ONE\\n' > a.txt; touch -r ref a.txt; rm ref",
    "another file in its place": "cp a.txt b; printf 'TWO\\n' > b; mv b a.txt",
    "a new directory": "mkdir -p n/e/w; echo x > n/e/w/f",
    "a directory made again": "rm -r deep; mkdir -p deep/er; echo 2 > deep/er/y.txt",
    "two directories swap names": "mv deep t; mv empty deep; mv t empty",
    "modes": "chmod 600 a.txt; chmod 711 empty",
    "links": "ln deep/x.txt new; ln -sfn deep link; rm twin; cp a.txt twin",
    "deletions": "rm -rf deep a.txt big.bin",
    "everything else": "rm -rf -- ./* .[!.]*; echo other > other",
}


def store_of(home: Path) -> Path:
    [store] = (home / "snapshots").iterdir()
    return store


def leavings(home: Path) -> list[Path]:
    """What is of a preparation that nobody has taken over."""
    return [*store_of(home).glob("*.prepared"), *store_of(home).glob("*-*.pack")]


def snapshot_of(home: Path, root: Path, **limits: int) -> TreeSnapshot:
    return TreeSnapshot(home, "s", str(root), SnapshotLimits(**limits))


def children() -> set[str]:
    tasks = Path("/proc/self/task").glob("*/children")
    return {child for listed in tasks for child in listed.read_text().split()}


@pytest.mark.proves("SH-8", "SS-4")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_one_undo_puts_back_what_the_first_command_changed(tree, tmp_path, command):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await prepare(session)
        await run(session, tree, command)
        after = whole_tree(tree)
        undone = await session.undo()
        assert undone.ok if before != after else undone.code == "undo.nothing", undone.text
        assert whole_tree(tree) == before


@pytest.mark.parametrize("change", OUTSIDERS.values(), ids=OUTSIDERS)
async def test_what_somebody_else_changed_before_the_command_stays(tree, tmp_path, change):
    async with open_session(tree, tmp_path / "home") as session:
        await prepare(session)
        subprocess.run(["bash", "-c", change], cwd=tree, check=True)
        before = whole_tree(tree)
        await run(session, tree, "rm -rf -- ./* .[!.]*; echo new > a.txt; mkdir deep")
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before


@settings(max_examples=25, derandomize=True)
@given(
    st.lists(operations(), max_size=8),
    st.lists(operations(), max_size=5),
    st.lists(operations(), max_size=5),
    st.lists(operations(), min_size=1, max_size=5),
    st.booleans(),
)
def test_changes_during_and_after_the_preparation_are_told_from_the_commands(
    first, during, between, command, in_git
):
    place = Path(tempfile.mkdtemp(prefix="prepared-", dir=IN_MEMORY))
    root = place / "project"
    root.mkdir()

    def outside(lines: list[str]) -> None:
        text = "\n".join(f"({line}) 2>/dev/null" for line in lines)
        subprocess.run(["bash", "-c", text], cwd=root, check=False)

    async def there_and_back() -> None:
        outside([*(["git init -q", "git add -A"] if in_git else []), *first])
        async with open_session(root, place / "home") as session:
            await get_parts(session).session_context.checkpoints.prepare()
            await asyncio.to_thread(outside, during)
            await until(lambda: not is_preparing())
            outside(between)
            before = whole_tree(root)
            await run(session, root, "\n".join(f"({line}) 2>/dev/null" for line in command))
            if whole_tree(root) != before:
                undone = await session.undo()
                assert undone.ok, undone.text
            assert whole_tree(root) == before

    try:
        asyncio.run(there_and_back())
    finally:
        for directory, _, _ in os.walk(place):
            os.chmod(directory, 0o700)
        shutil.rmtree(place)


async def test_the_command_goes_on_from_what_was_kept(tree, tmp_path):
    snapshot = snapshot_of(tmp_path / "home", tree)
    snapshot.prepare([str(tree)])
    ahead = snapshot._ahead
    assert ahead is not None
    watches = ahead._watches
    await until(lambda: not is_preparing())
    snapshot.begin([str(tree)])
    assert snapshot._tree.watches is watches
    (tree / "a.txt").write_text("two\n")
    changed = {change.path for change in snapshot.end()}
    assert changed == {str(tree / "a.txt"), str(tree / "twin")}
    snapshot.close()
    assert not list(store_of(tmp_path / "home").glob("*.manifest"))


async def test_a_crash_after_it_is_undone(tree, tmp_path):
    before = whole_tree(tree)
    killed(tree, tmp_path / "home", [AHEAD, COMMAND])
    async with open_session(tree, tmp_path / "home", "crashed") as session:
        assert session.history()[0].cut_off
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


@pytest.mark.parametrize("moment", range(12))
async def test_a_preparation_that_was_killed_is_nothing(tree, tmp_path, moment):
    for number in range(400):
        (tree / f"deep/{number}").write_text(f"{number}\n" * 50)
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await get_parts(session).session_context.checkpoints.prepare()
        process = await until(
            lambda: preparation._at_work[0]._process if preparation._at_work else None
        )
        assert process is not None
        # Later and later: before it has begun, while it looks, keeps, writes down, and is done.
        await asyncio.sleep(moment * 0.02)
        process.kill()
        await until(lambda: not is_preparing())
        await run(session, tree, "rm -rf deep big.bin")
        assert (await session.undo()).ok
        assert whole_tree(tree) == before
        assert not list(store_of(tmp_path / "home").glob("*.prepared"))


@pytest.mark.skipif(sys.platform != "linux", reason="looks at what /proc lists")
async def test_it_ends_with_a_host_that_is_killed_and_the_next_session_tidies_up(tree, tmp_path):
    for number in range(3000):
        (tree / f"deep/{number}").write_text(f"{number}\n" * 50)
    home = tmp_path / "home"
    host = subprocess.Popen(
        [sys.executable, commanding.__file__, str(tree), str(home), BEGIN_AHEAD],
        stdout=subprocess.PIPE,
    )
    assert host.stdout is not None
    assert host.stdout.readline() == b"begun\n"
    tasks = Path(f"/proc/{host.pid}/task")
    [child] = blocked_until(
        lambda: [c for each in tasks.glob("*/children") for c in each.read_text().split()]
    )
    blocked_until(lambda: list((home / "snapshots").rglob("*.pack")))
    host.send_signal(signal.SIGKILL)
    host.wait()
    host.stdout.close()
    blocked_until(lambda: not is_alive(int(child)))
    # What such a process was about to write down, however far it had come.
    (store_of(home) / "0123456789abcdef.prepared").write_bytes(b"half")
    (store_of(home) / "0123456789abcdef-00.pack").write_bytes(b"half")
    before = whole_tree(tree)
    async with open_session(tree, home) as session:
        await run(session, tree, "rm -rf deep")
        assert not list(store_of(home).glob("0123456789abcdef*"))
        assert (await session.undo()).ok
    assert whole_tree(tree) == before
    async with open_session(tree, home) as session:
        await run(session, tree, "true")
    assert leavings(home) == []


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc lists")
@pytest.mark.parametrize("waits", [False, True])
async def test_a_session_closed_meanwhile_leaves_nothing_behind(tree, tmp_path, waits):
    for number in range(1000):
        (tree / f"deep/{number}").write_text(f"{number}\n" * 50)
    home = tmp_path / "home"
    async with open_session(tree, home) as session:
        await session.call("Read", file_path=str(tree / "a.txt"))
    descriptors, running = open_descriptors(), children()
    async with open_session(tree, home) as session:
        await get_parts(session).session_context.checkpoints.prepare()
        if waits:
            await until(lambda: children() - running)
    assert not is_preparing()
    assert children() <= running
    assert open_descriptors() <= descriptors
    assert leavings(home) == []


async def test_without_a_command_the_next_session_has_it(tree, tmp_path):
    home = tmp_path / "home"
    async with open_session(tree, home) as session:
        await prepare(session)
    assert (store_of(home) / "index").exists()
    assert not list(store_of(home).glob("*.prepared"))
    assert not (home / "sessions" / session.id / "journal.jsonl").exists()
    before = whole_tree(tree)
    async with open_session(tree, home) as session:
        await run(session, tree, "rm -rf deep big.bin")
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


class NeverBusy(list[preparation.Preparation]):
    """Lets everybody begin at once."""

    def __bool__(self) -> bool:
        return False


async def test_two_sessions_prepare_the_same_project_at_once(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "_at_work", NeverBusy())
    subprocess.run(["git", "init", "-q"], cwd=tree, check=True)
    subprocess.run(["git", "add", "-A"], cwd=tree, check=False)
    before = whole_tree(tree)
    home = tmp_path / "home"
    async with open_session(tree, home) as one, open_session(tree, home) as other:
        await asyncio.gather(
            *(get_parts(s).session_context.checkpoints.prepare() for s in (one, other))
        )
        await until(lambda: not is_preparing())
        await run(one, tree, "rm -rf deep .git")
        between = whole_tree(tree)
        await run(other, tree, "rm -rf -- ./* .[!.]*")
        assert (await other.undo()).ok
        assert whole_tree(tree) == between
        assert (await one.undo()).ok
        assert whole_tree(tree) == before


async def test_one_at_a_time_and_a_command_does_not_wait_for_its_turn(tree, tmp_path, monkeypatch):
    busy = snapshot_of(tmp_path / "home", tree)
    monkeypatch.setattr(preparation, "_at_work", [busy])
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await get_parts(session).session_context.checkpoints.prepare()
        await run(session, tree, "rm -rf deep")
        assert not is_preparing()
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_a_host_keeps_few_trees_ready_and_the_others_are_kept_by_their_commands(
    tree, tmp_path, monkeypatch
):
    monkeypatch.setattr(preparation, "_MAX_UNUSED", 1)
    home = tmp_path / "home"
    async with open_session(tree, home) as one, open_session(tree, home) as other:
        await prepare(one)
        before = open_descriptors()
        await get_parts(other).session_context.checkpoints.prepare()
        assert open_descriptors() <= before
        assert not is_preparing()
        for session in (other, one):
            as_it_was = whole_tree(tree)
            await run(session, tree, "rm -rf deep; mkdir deep; echo new > deep/x.txt")
            assert (await session.undo()).ok
            assert whole_tree(tree) == as_it_was
    assert preparation.can_prepare()


async def test_a_command_that_comes_meanwhile_waits_for_what_is_under_way(tree, tmp_path):
    for number in range(500):
        (tree / f"deep/{number}").write_text(f"{number}\n" * 50)
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await get_parts(session).session_context.checkpoints.prepare()
        await run(session, tree, "rm -rf deep big.bin")
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_other_roots_than_were_prepared_are_kept_by_the_command(tree, tmp_path):
    more = tmp_path / "more"
    more.mkdir()
    (more / "f").write_text("1\n")
    before = whole_tree(tree), whole_tree(more)
    async with open_session(tree, tmp_path / "home") as session:
        await prepare(session)
        get_parts(session).set_directories([more])
        await run(session, tree, f"rm -rf deep {more}/f")
        assert (await session.undo()).ok
    assert (whole_tree(tree), whole_tree(more)) == before


async def test_a_project_that_is_gone_meanwhile_is_no_reason_to_fail(tree, tmp_path):
    async with open_session(tree, tmp_path / "home") as session:
        await get_parts(session).session_context.checkpoints.prepare()
        shutil.rmtree(tree)
        await until(lambda: not is_preparing())
        await run(session, tree.parent, f"mkdir {tree}; echo new > {tree}/new")
        assert (await session.undo()).ok
        assert not tree.exists()
        tree.mkdir()


async def test_what_cannot_be_read_is_named_as_ever(tree, tmp_path):
    (tree / "closed").write_text("1\n")
    (tree / "closed").chmod(0)
    (tree / "shut").mkdir(mode=0)
    before = whole_tree(tree) if os.geteuid() == 0 else None
    async with open_session(tree, tmp_path / "home") as session:
        await prepare(session)
        result = await session.call("sh", command="rm -rf big.bin deep", cwd=str(tree))
        assert result.ok, result.text
        if os.geteuid() != 0:
            assert "closed (it cannot be read)" in result.notes[0]
        assert (await session.undo()).ok
    assert before is None or whole_tree(tree) == before
    (tree / "shut").chmod(0o700)


async def test_what_is_too_much_is_left_out_as_ever(tree, tmp_path):
    (tree / "large").mkdir()
    (tree / "large/one").write_bytes(os.urandom(500_000))
    limits = {"undo": {"shell_max_bytes": 400_000}}
    async with open_session(tree, tmp_path / "home", settings=limits) as session:
        await prepare(session)
        result = await session.call("sh", command="rm -rf large deep", cwd=str(tree))
        assert f"{tree}/large/one (too much to remember)" in result.notes[0]
        assert (await session.undo()).ok
    assert (tree / "deep/x.txt").exists()
    assert sum(pack.stat().st_size for pack in store_of(tmp_path / "home").glob("*.pack")) < 400_000


async def test_one_that_fails_leaves_its_room_to_others(tree, tmp_path, monkeypatch):
    fails = (
        "import os, sys; from pathlib import Path; size = int.from_bytes(os.read(0, 4), 'big'); "
        "sys.path[:0] = {paths!r}; import msgspec; "
        "order = msgspec.msgpack.decode(os.read(0, size)); "
        "[store] = (Path(os.fsdecode(order[0])) / 'snapshots').iterdir(); "
        "(store / (order[3] + '.prepared')).write_bytes(b'half'); "
        "(store / (order[3] + '-1.pack')).write_bytes(b'half'); sys.exit(1)"
    )
    monkeypatch.setattr(preparation, "_START", fails)
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await prepare(session)
        assert leavings(tmp_path / "home") == []
        await run(session, tree, "rm -rf deep")
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_it_is_not_pruned_before_a_command_came(tree, tmp_path):
    home = tmp_path / "home"
    before = whole_tree(tree)
    async with open_session(tree, home) as session:
        await prepare(session)
        prune(home, max_bytes=0, retention_days=30)
        await run(session, tree, "rm -rf deep big.bin")
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_without_watches_everything_is_looked_at_again(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(preparation, "can_be_watched", lambda _place: False)
    async with open_session(tree, tmp_path / "home") as session:
        await prepare(session)
        (tree / "a.txt").write_text("ONE\n")
        before = whole_tree(tree)
        await run(session, tree, "rm -rf a.txt deep")
        assert (await session.undo()).ok
        assert whole_tree(tree) == before
