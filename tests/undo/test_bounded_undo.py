"""Commands whose writes were proved keep no more than those, and are undone like any other."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from tests.expected_types import require
from tests.undo import commanding
from tests.undo.bounded_fuzz import IN_MEMORY, Bench, attempts, remove
from tests.undo.commanding import BOUNDED, bounded, bounded_sh, open_session, run, whole_tree
from tests.undo.test_shell_undo import COMMANDS
from tests.undo.test_shell_undo_keeping import Desk
from tests.waiting import HANG_S, until

from handaxe import Session
from handaxe.contract.effects import Effects
from handaxe.disk.append_log import scan
from handaxe.shell.analysis import analyze
from handaxe.undo.journal_files.records import decode
from handaxe.undo.write_extent import ExtentLimits, UnboundedWrite, WriteTargets, resolve_extent

ROOM = ExtentLimits(1_000, 1 << 20)
FAMILY = {name: text for name, text in COMMANDS.items() if analyze(text, "/p", "/nowhere").extent}


def places(
    tree: Path, command: str, room: ExtentLimits = ROOM, own: str = "/own"
) -> dict[str, object]:
    """What a command can change in a tree, by paths as seen from there."""
    found = written(tree, command, room, own)
    if found.doubt:
        raise UnboundedWrite(found.doubt)
    return {os.path.relpath(path, tree): names for path, names in found.inside.items()}


def written(tree: Path, command: str, room: ExtentLimits = ROOM, own: str = "/own") -> WriteTargets:
    """Where a command can write that runs in a tree."""
    extent = analyze(command, str(tree), "/nowhere").extent
    assert extent is not None
    return resolve_extent(extent, [str(tree)], own, room)


def records(home: Path) -> list[str]:
    """The kinds of records in the undo journal."""
    [journal] = home.rglob("journal.jsonl")
    return [type(decode(line.payload)).__name__ for line in scan(journal)]


@pytest.fixture
def server_session(tree, tmp_path):
    server_session = Desk(tmp_path / "home", tree)
    yield server_session
    server_session.checkpoints.close()


@pytest.mark.proves("SH-8", "SS-4")
@pytest.mark.parametrize("command", FAMILY.values(), ids=FAMILY)
async def test_one_undo_puts_back_what_a_bounded_command_changed(tree, tmp_path, command):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home", shell=bounded_sh) as session:
        await run(session, tree, command)
        after = whole_tree(tree)
        undone = await session.undo()
        if before == after:
            assert undone.code == "undo.nothing"
            return
        for expected, redo in ((before, True), (after, False)):
            assert undone.ok, undone.text
            assert whole_tree(tree) == expected
            undone = await session.undo(redo=redo)
        assert undone.ok, undone.text
        assert whole_tree(tree) == before


@pytest.mark.proves("SH-8")
@pytest.mark.parametrize("seed", range(3))
def test_random_commands_change_nothing_beyond_their_bound_and_are_undone(seed):
    place = Path(tempfile.mkdtemp(prefix="bounded-", dir=IN_MEMORY))
    try:
        assert asyncio.run(attempts(seed, 60, place)) == []
    finally:
        remove(place)


@pytest.mark.parametrize(
    "command",
    [
        "cd d && mv ../d ../e && cd .. && touch z", "cd k && rm -f TOP/p/k && cd .. && touch z",
        "cd -P k && cd .. && touch z", "for x in 1 2; do ln -s d z; done", "cd k; touch ../z",
        "seq 3 | while read x; do ln -s d z; done", "ln -s d z; ln -s b z", "cd k && cd .. && touch z",
        "cp -r d/. e", "mkdir z && cd z && mv ../d .", "rm -rf l; mkdir -p l/e; touch l/e/z",
        "sed -i s/o/0/ m; touch m", "cp -r ../q/d .; touch d/l/z", "mv k z; touch z/x",
        "cd d; rm -r ../d; mkdir ../d; touch z", "echo x > l/k", "cp b d/k", "mv b e/m",
    ],
)  # fmt: skip
def test_commands_that_were_thought_out_stay_in_their_bound_too(tmp_path, command):
    bench = Bench(tmp_path / "bench")
    command = command.replace("TOP", str(bench.top))
    assert asyncio.run(bench.attempt(command, keep=False)) == ""


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("touch new", {"new": ()}),
        ("touch deep/new", {"deep/new": ()}),
        ("touch link", None),  # It leads to a file with two names.
        ("touch into/new", {"deep/new": ()}),
        ("touch into/../new", {"new": ()}),
        ("touch dangling", {"dangling": (), "nowhere": ()}),
        ("touch none/new", {"none/new": ()}),
        ("mkdir -p none/er/est", {"none": (), "none/er": (), "none/er/est": ()}),
        ("chmod 755 deep", {"deep": ()}),
        ("chmod 644 deep", None),
        ("chmod 644 big.bin", {"big.bin": ()}),
        ("chmod -R 755 deep", {"deep": None}),
        ("rm -r into", {"into": None}),
        ("rm -r deep; mkdir deep; touch deep/er", {"deep": None}),
        ("rm big.bin", {"big.bin": ()}),
        ("rm twin", None),
        ("rm pipe", None),
        ("rm -rf .", None),  # It holds a FIFO, and names that are shared.
        ("rm -rf ..", None),
        ("rm -rf /", None),
        ("mv big.bin deep", {"big.bin": None, "deep/big.bin": None, "deep": ("Cu??????",),
                             ".": ("Cu??????",)}),
        ("mv big.bin new", {"big.bin": None, "new": None, ".": ("Cu??????",)}),
        ("mv -T empty deep", {"empty": None, "deep": None, ".": ("Cu??????",)}),
        ("cp -r deep empty", {"empty/deep": None, "empty": ("Cu??????",)}),
        ("cp -r deep/er linked", None),  # There is a link in linked/er, and cp writes through it.
        ("ln -sfn deep into", {"into": (), "deep/deep": None, "deep": ("Cu??????",),
                               ".": ("Cu??????",)}),
        ("sed -i s/a/b/ deep/x.txt", {"deep/x.txt": (), "deep": ("sed??????",)}),
        ("touch /dev/stdout", None),
        ("touch /proc/self/cwd/x", None),
        ("touch loop", None),
        ("touch none/../x", {"x": ()}),
        ("mkdir -p none/../x", {"none": (), "x": ()}),
        ("mkdir d && cd d && cp ../big.bin ..", {"d": (), "big.bin": None, ".": ("Cu??????",)}),
        ("touch /tmp/elsewhere", {}),
        # An earlier step makes a later word mean something else.
        ("ln -s empty way; touch way/x", None),
        ("mv deep way; touch way/x", None),
        ("cp -r deep way; touch way/x", None),
        ("mv deep way; cd way && touch x", None),
        ("cd deep; mv ../deep ../way; touch x", None),
        ("rm into; mkdir into; touch into/x", None),
        ("sed -i s/a/b/ into; touch into/x", None),
        ("ln -sf deep way; ln -sf empty way", None),
        ("echo x > way; mv way deep/er", {"deep/er/way": None, "way": None, ".": ("Cu??????",),
                                          "deep/er": ("Cu??????",)}),
        ("touch way; rm way", {"way": ()}),
    ],
)  # fmt: skip
def test_where_a_command_writes_depends_on_the_links_that_are_there(tree, command, expected):
    (tree / "into").symlink_to("deep")
    (tree / "loop").symlink_to("loop")
    (tree / "linked/er").mkdir(parents=True)
    (tree / "linked/er/y.txt").symlink_to("../../big.bin")
    if expected is None:
        with pytest.raises(UnboundedWrite):
            places(tree, command)
    else:
        assert places(tree, command) == expected


def test_a_file_elsewhere_may_have_another_name_here(tree, tmp_path):
    os.link(tree / "big.bin", tmp_path / "other-name")
    with pytest.raises(UnboundedWrite):
        places(tree, f"echo x > {tmp_path}/other-name")


def test_what_a_confined_command_finds_outside_is_not_what_we_see(tree, tmp_path):
    (tmp_path / "back").symlink_to(tree)
    command = f"touch {tmp_path}/back/x"
    extent = require(analyze(command, str(tree), "/nowhere").extent)
    extent = msgspec.structs.replace(extent, is_confined=True)
    assert resolve_extent(extent, [str(tree)], "/own", ROOM).doubt
    assert places(tree, command) == {"x": ()}


def test_there_is_room_for_so_much_and_no_more(tree):
    assert places(tree, "rm -r deep", ExtentLimits(4, 5_000)) == {"deep": None}
    for room in (ExtentLimits(3, 5_000), ExtentLimits(4, 500)):
        assert written(tree, "rm -r deep", room).doubt == "it exceeds the limit"
    assert written(tree, "rm big.bin", ExtentLimits(4, 5_000)).doubt == "it exceeds the limit"


def test_files_of_our_own_and_a_directory_behind_a_link_are_nobodys_bound(tree):
    (tree / "into").symlink_to("deep")
    for command in ("touch deep/er/x", "rm -r deep"):
        with pytest.raises(UnboundedWrite):
            places(tree, command, own=str(tree / "deep/er"))
    with pytest.raises(UnboundedWrite):
        places(tree / "into", "touch x")


@pytest.mark.proves("SH-8")
async def test_a_bounded_command_needs_no_look_at_the_tree_and_an_unknown_one_does(tree, tmp_path):
    trees = [whole_tree(tree)]
    async with open_session(tree, tmp_path / "home", shell=bounded_sh) as session:
        commands = [
            "echo two > big.bin", "rm -r deep; mkdir deep", "x=1 && eval touch unknown",
            "mv big.bin deep/b", "for f in *.txt; do rm $f; done; touch n", "chmod 700 deep; touch deep/n",
        ]  # fmt: skip
        for at, command in enumerate(commands):
            await run(session, tree, command)
            trees.append(whole_tree(tree))
            assert (tmp_path / "home/snapshots").exists() == (at > 1)
        kinds = [
            kind for kind in records(tmp_path / "home") if kind in ("BeforeRecord", "TrackedRecord")
        ]
        assert kinds == [
            "BeforeRecord",
            "BeforeRecord",
            "TrackedRecord",
            "BeforeRecord",
            "TrackedRecord",
            "BeforeRecord",
        ]
        for at in (5, 4, 3, 2, 1, 0):
            assert (await session.undo()).ok
            assert whole_tree(tree) == trees[at]


async def test_too_large_a_tree_is_compared_as_a_whole(tree, tmp_path):
    (tree / "many").mkdir()
    for number in range(1_001):
        (tree / f"many/{number}").touch()
    before = whole_tree(tree)
    async with open_session(
        tree, tmp_path / "home", shell=bounded_sh, settings={"undo": {"shell_max_files": 1_010}}
    ) as session:
        result = await session.call("sh", command="rm -r many deep", cwd=str(tree))
        assert "Changes there cannot be undone" in " ".join(result.notes)
        assert "TrackedRecord" in records(tmp_path / "home")
        assert (await session.undo()).ok
        assert (tree / "deep/er/y.txt").exists()
        assert len(before) > len(whole_tree(tree))


async def test_what_is_not_covered_for_commands_is_not_covered_for_bounded_ones(tree, tmp_path):
    off = {"undo": {"shell_max_files": 0}}
    async with open_session(tree, tmp_path / "off", shell=bounded_sh, settings=off) as session:
        await run(session, tree, "rm big.bin")
        assert session.history() == []


async def test_what_a_bounded_command_does_in_the_background_belongs_to_it(server_session, tree):
    before = whole_tree(tree)
    command = "echo 1 > early; sleep 9; echo 2 > late; rm -r deep; echo 3 > shared"
    await server_session.begin("slow", bounded(command, str(tree)))
    (tree / "early").write_text("1\n")
    await server_session.checkpoints.after("slow")
    await server_session.begin("other", Effects.on(str(tree / "shared"), str(tree / "early")))
    (tree / "shared").write_text("of another\n")
    (tree / "early").write_text("of another\n")
    await server_session.checkpoints.after("other")
    (tree / "late").write_text("2\n")
    (tree / "deep/x.txt").unlink()
    await server_session.checkpoints.after("slow")
    listed = {
        call.call_id: sorted(Path(change.file_path).name for change in call.changes)
        for call in server_session.history.calls()
    }
    assert listed == {"slow": ["early", "late", "x.txt"], "other": ["early", "shared"]}
    await server_session.undo()
    assert (tree / "early").read_text() == "1\n"
    await server_session.undo("undo more")
    assert whole_tree(tree) == before


@pytest.mark.proves("SH-8")
async def test_at_its_timeout_a_bounded_command_goes_on_and_its_record_with_it(project, tmp_path):
    async with Session(project, home=tmp_path / "home", allow=["Bash"]) as session:
        result = await session.call("Bash", command="touch a; sleep 1; touch b", timeout=300)
        assert "moved to the background" in result.text
        await until(lambda: len(records(tmp_path / "home")) == 4)
        assert records(tmp_path / "home") == [
            "JournalStart",
            "BeforeRecord",
            "AfterRecord",
            "AfterRecord",
        ]
        [call] = session.history()
        assert [Path(change.file_path).name for change in call.changes] == ["a", "b"]
        assert (await session.undo()).ok
        assert list(project.iterdir()) == []


@pytest.mark.proves("SH-8", "SS-4")
async def test_a_bounded_command_that_was_cut_off_is_undone_by_the_resumed_session(tree, tmp_path):
    before = whole_tree(tree)
    command = "rm -rf deep big.bin; echo new > new.txt; mv empty full; sed -i s/h/H/ .hidden"
    process = subprocess.Popen(
        [sys.executable, commanding.__file__, str(tree), str(tmp_path / "home"),
         BOUNDED, f"{command}; sleep {HANG_S}"],
        start_new_session=True,
    )  # fmt: skip
    try:
        await until(lambda: (tree / ".hidden").read_text() == "Hidden\n")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert records(tmp_path / "home") == ["JournalStart", "BeforeRecord"]
    async with open_session(tree, tmp_path / "home", "crashed") as session:
        [call] = session.history()
        assert call.cut_off
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before


async def test_what_a_killed_program_leaves_beside_its_file_is_part_of_the_change(
    server_session, tree
):
    (tree / "sedOlder1").write_text("somebody's\n")
    before = whole_tree(tree)
    await server_session.begin("sed", bounded("sed -i s/a/b/ .hidden", str(tree)))
    (tree / "sedAb12Cd").write_text("half\n")
    (tree / "sedOlder1").write_text("changed\n")
    await server_session.checkpoints.after("sed")
    await server_session.undo()
    assert whole_tree(tree) == before
