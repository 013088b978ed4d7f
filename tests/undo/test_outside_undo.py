"""What a command wrote outside the working directories is put back like what it wrote inside."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from tests.undo import commanding
from tests.undo.commanding import BOUNDED, bounded, bounded_sh, open_session, run, sh, whole_tree
from tests.undo.test_bounded_undo import records, written
from tests.undo.test_shell_undo_keeping import Desk
from tests.waiting import HANG_S, until

from handaxe import Session
from handaxe.app.undo_commands import find_past_sessions
from handaxe.contract.effects import Act, Effects, Extent
from handaxe.contract.ports.undo import UndoRequest
from handaxe.shell.analysis import analyze
from handaxe.undo.content_store import ContentStore
from handaxe.undo.journal import UndoJournal
from handaxe.undo.write_extent import ExtentLimits, resolve_extent

ON_A_FILE = {
    "cp": "cp src/f {file}", "cp over a name in a directory": "cp src/f {directory}",
    "cp -f": "cp -f src/f {file}", "cp -r": "cp -r src/f {file}", "mv": "mv src/f {file}",
    "mv away": "mv {file} taken", "ln -sf": "ln -sf src/f {file}", "sed -i": "sed -i s/old/new/ {file}",
    "sed with a backup": "sed -i.bak s/old/new/ {file}", "tee": "cat src/f | tee {file}",
    "tee -a": "cat src/f | tee -a {file}", ">": "cat src/f > {file}", ">>": "cat src/f >> {file}",
    "truncate": "truncate -s 2 {file}", "rm": "rm {file}", "chmod": "chmod 600 {file}",
    "chmod +x": "chmod +x {file}", "several": "echo 1 > {file}; rm {file}; echo 2 > {file}; touch in-the-roots",
}  # fmt: skip
IN_A_DIRECTORY = {
    "a new file": "cat src/f > {directory}/new", "touch": "touch {directory}/new", "mkdir": "mkdir {directory}/new",
    "mkdir -p": "mkdir -p {directory}/a/b/c; touch {directory}/a/b/c/d", "cp": "cp src/f {directory}/new",
    "cp -r": "cp -r src {directory}", "cp -r onto a tree": "cp -r src {directory}/again",
    "mv into": "mv src {directory}", "mv out of": "mv {directory}/deep here", "ln -s": "ln -s /etc {directory}",
    "rm -r": "rm -r {directory}/deep", "rmdir": "rmdir {directory}/empty", "chmod -R": "chmod -R 700 {directory}/deep",
    "chmod": "chmod 711 {directory}/empty", "tee": "cat src/f | tee {directory}/new {directory}/f",
    "in it": "cd {directory} && rm -r deep && echo x > new && sed -i s/old/new/ f",
    "rm -rf and made again": "rm -rf {directory}/deep; mkdir -p {directory}/deep/er; echo 2 > {directory}/deep/er/y",
}  # fmt: skip
WAYS = {"through a link": ("tree/f", "tree", "way"), "literal": ("OUT/f", "OUT", "../outside")}
CASES = {
    f"{name}, {kind}": command.format(file=file, directory=holding)
    for name, command in ON_A_FILE.items()
    for kind, (file, holding, _) in WAYS.items()
} | {
    f"directory: {name}, {kind}": command.format(directory=directory)
    for name, command in IN_A_DIRECTORY.items()
    for kind, (_, _, directory) in WAYS.items()
}


@pytest.fixture
def outside(project: Path) -> Path:
    """A directory beside the project, and ways to it."""
    outside = project.parent / "outside"
    for name in ("deep/er", "empty", "again/src"):
        (outside / name).mkdir(parents=True)
    (outside / "f").write_text("old\n")
    (outside / "f").chmod(0o640)
    (outside / "deep/x").write_bytes(os.urandom(100_000))
    (outside / "deep/er/y").write_text("y\n")
    (outside / "deep").chmod(0o750)
    (outside / "deep/l").symlink_to("../f")
    (outside / "again/src/g").write_text("old g\n")
    (project / "src").mkdir()
    (project / "src/f").write_text("new\n")
    (project / "src/g").write_text("new g\n")
    (project / "tree").mkdir()
    (project / "tree/f").symlink_to("../../outside/f")
    (project / "way").symlink_to(outside)
    return outside


def both(project: Path) -> dict[bytes, tuple]:
    return whole_tree(project.parent, without=("home", "config"))


@pytest.mark.proves("SH-8", "SS-4")
@pytest.mark.parametrize("command", CASES.values(), ids=CASES)
async def test_one_undo_puts_back_what_was_written_outside(project, outside, tmp_path, command):
    before = both(project)
    async with open_session(project, tmp_path / "home", shell=bounded_sh) as session:
        said = await run(session, project, command.replace("OUT", str(outside)))
        after = both(project)
        assert before != after, said
        for redo, expected in ((False, before), (True, after), (False, before)):
            undone = await session.undo(redo=redo)
            assert undone.ok, undone.text
            assert both(project) == expected


async def test_the_bash_tool_is_undone_outside_as_well(project, outside, tmp_path):
    before = both(project)
    mode = "bypassPermissions"
    async with Session(project, home=tmp_path / "home", permission_mode=mode) as session:
        result = await session.call("Bash", command="cp src/f tree")
        assert result.ok, result.text
        assert (outside / "f").read_text() == "new\n"
        [call] = session.history()
        assert [change.file_path for change in call.changes] == [str(outside / "f")]
        assert (await session.undo()).ok
        assert both(project) == before


@pytest.mark.proves("SH-8", "SS-4")
@pytest.mark.parametrize(
    "command",
    [
        "cp -r src tree/src", "cp -r src tree/src; rm src/f", "touch twin; echo x > OUT/f",
        "echo x > OUT/f; mv src moved; touch moved/new", "chmod 644 OUT/empty; echo x > tree/f",
    ],
)  # fmt: skip
async def test_what_is_known_of_the_outside_is_kept_beside_the_whole_roots(
    project, outside, tmp_path, command
):
    (project / "tree/src/src").mkdir(parents=True)
    (project / "tree/src/src/f").symlink_to(outside / "f")
    (project / "twin").write_text("twin\n")
    os.link(project / "twin", project / "src/twin")
    before = both(project)
    async with open_session(project, tmp_path / "home", shell=bounded_sh) as session:
        await run(session, project, command.replace("OUT", str(outside)))
        assert "TrackedRecord" in records(tmp_path / "home")
        after = both(project)
        assert (outside / "f").read_text() != "old\n"
        for redo, expected in ((False, before), (True, after), (False, before)):
            undone = await session.undo(redo=redo)
            assert undone.ok, undone.text
            assert both(project) == expected


@pytest.mark.proves("SH-8", "SS-4")
@pytest.mark.parametrize(
    "doubtful", ["", "mv src moved; touch moved/new; "], ids=["bounded", "both"]
)
async def test_what_a_killed_handaxe_had_written_outside_is_undone(
    project, outside, tmp_path, doubtful
):
    before = both(project)
    command = f"{doubtful}rm -r ../outside/deep; echo new > ../outside/new; echo x > tree/f"
    process = subprocess.Popen(
        [sys.executable, commanding.__file__, str(project), str(tmp_path / "home"),
         BOUNDED, f"{command}; sleep {HANG_S}"],
        start_new_session=True,
    )  # fmt: skip
    try:
        await until(lambda: (outside / "f").read_text() == "x\n")
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert records(tmp_path / "home") == [
        "JournalStart",
        "TrackedRecord" if doubtful else "BeforeRecord",
    ]
    [session] = find_past_sessions(tmp_path / "home", root=project)
    [call] = session.calls()
    assert call.cut_off
    assert {str(outside / "f"), str(outside / "deep"), str(outside / "new")} <= {
        change.file_path for change in call.changes
    }
    refused = await session.undo(UndoRequest())
    assert refused.code == "undo.outside"
    assert (outside / "f").read_text() == "x\n"
    undone = await session.undo(UndoRequest(), agreed=refused.data["paths"])
    assert undone.ok, undone.text
    assert both(project) == before


async def test_a_directory_that_was_closed_outside_is_opened_again(project, outside, tmp_path):
    before = both(project)
    async with open_session(project, tmp_path / "home", shell=bounded_sh) as session:
        await run(session, project, "echo x > tree/f; chmod 644 way/deep; mv src moved")
        undone = await session.undo()
        assert undone.ok, undone.text
        assert both(project) == before


@pytest.mark.parametrize("command", ["echo x > tree/f", "mv src s; touch s/n; echo x > tree/f"])
async def test_undo_refuses_what_somebody_else_changed_outside(project, outside, tmp_path, command):
    async with open_session(project, tmp_path / "home", shell=bounded_sh) as session:
        await run(session, project, command)
        (outside / "f").write_text("of somebody else\n")
        undone = await session.undo()
        assert undone.code == "undo.conflict"
        assert str(outside / "f") in undone.text
        assert (outside / "f").read_text() == "of somebody else\n"
        assert (await session.undo(force=True)).ok
        assert (outside / "f").read_text() == "old\n"


@pytest.mark.parametrize(
    ("command", "place", "reason"),
    [
        ("rm -r OUT/deep", "OUT/deep", "too large"),
        ("rm -r OUT/deep src; mv tree t; touch t/n", "OUT/deep", "too large"),
        ("echo x > OUT/twin", "OUT/twin", "a hard-linked file"),
        ("rm -r OUT/odd", "OUT/odd", "a special file"),
        ("touch HOME/x", "HOME/x", "the data directory of handaxe"),
        ("chmod -R 755 OUT/..", "UP", "it contains a working directory or the data directory"),
    ],
)
async def test_what_cannot_be_kept_outside_is_told(
    project, outside, tmp_path, command, place, reason
):
    os.link(outside / "f", outside / "twin")
    (outside / "odd").mkdir()
    os.mkfifo(outside / "odd/pipe")
    with (outside / "deep/x").open("r+b") as large:
        large.truncate(65 << 20)
    names = {"OUT": str(outside), "HOME": str(tmp_path / "home"), "UP": str(tmp_path)}
    for short, name in names.items():
        command, place = command.replace(short, name), place.replace(short, name)
    async with open_session(project, tmp_path / "home", shell=bounded_sh) as session:
        result = await session.call("sh", command=command, cwd=str(project))
        assert result.ok, result.text
        assert f"Changes there cannot be undone: {place} ({reason}" in " ".join(result.notes)


async def test_the_record_tells_which_paths_lie_outside(project, outside, tmp_path):
    async with open_session(project, tmp_path / "home", shell=bounded_sh) as session:
        await run(session, project, "echo x > tree/f; echo y > here")
        await run(session, project, "rm -r way/deep; mv src s; touch s/n")
        await session.call("Write", file_path=str(outside / "w"), content="w\n")
        await session.call("Write", file_path=str(project / "w"), content="w\n")
        [directory] = (tmp_path / "home/sessions").iterdir()
        entries = UndoJournal(directory, ContentStore(tmp_path / "home")).entries()
        for entry in entries:
            assert entry.after
            for place in entry.after:
                assert entry.is_outside(place) == place.startswith(f"{outside}/"), place
        assert [any(map(entry.is_outside, entry.after or ())) for entry in entries] == [
            True, True, True, False,
        ]  # fmt: skip


async def test_commands_of_unknown_extent_are_undone_in_the_roots_alone(project, outside, tmp_path):
    async with open_session(project, tmp_path / "home", shell=sh) as session:
        await run(session, project, "echo x > tree/f; echo y > here")
        assert (await session.undo()).ok
        assert (outside / "f").read_text() == "x\n"
        assert not (project / "here").exists()


@pytest.mark.parametrize("command", ["rm -rf way", "mv way there"])
def test_who_takes_a_link_away_leaves_alone_what_it_leads_to(project, outside, command):
    found = written(project, command)
    assert not found.doubt
    assert not found.outside
    assert set(found.inside) >= {str(project / "way")}
    assert str(outside) in written(project, "rm -rf way/").outside


def test_who_copies_into_a_tree_may_write_through_every_link_in_it(project, outside):
    (project / "tree/in").mkdir()
    (project / "tree/in/g").symlink_to(outside / "new")
    act = Act("moves", into=((str(project / "tree"), ""),))
    extent = Extent(str(project), (act,), frozenset({"cp"}))
    found = resolve_extent(extent, [str(project)], "/own", ExtentLimits(1_000, 1 << 20))
    assert found.doubt
    assert set(found.outside) == {str(outside / "f"), str(outside / "new")}


def test_the_room_outside_is_shared_by_its_places(project, outside):
    found = written(project, f"rm -r {outside}/deep {outside}/f", ExtentLimits(1_000, 1 << 20))
    assert set(found.outside) == {str(outside / "deep"), str(outside / "f")}
    assert not found.lost
    assert not found.doubt


def test_what_a_confined_command_is_known_to_write_outside_is_kept_all_the_same(project, outside):
    extent = analyze("echo x > tree/f", str(project), "/nowhere").extent
    assert extent is not None
    extent = msgspec.structs.replace(extent, is_confined=True)
    found = resolve_extent(extent, [str(project)], "/own", ExtentLimits(10, 100))
    assert found.doubt
    assert str(outside / "f") in found.outside


async def test_what_a_call_does_outside_in_the_background_belongs_to_it(project, outside, tmp_path):
    server_session = Desk(tmp_path / "home", project)
    before = both(project)
    command = "mv src s; touch s/n; echo x > tree/f; sleep 9; rm -r way/deep; touch way/new"
    await server_session.begin("slow", bounded(command, str(project)))
    (outside / "f").write_text("x\n")
    (outside / "new").write_text("1\n")
    await server_session.checkpoints.after("slow")
    await server_session.begin("other", Effects.on(str(outside / "new")))
    (outside / "new").write_text("of another\n")
    await server_session.checkpoints.after("other")
    (outside / "f").write_text("old\n")
    (outside / "deep/er/y").unlink()
    await server_session.checkpoints.after("slow")
    listed = {
        call.call_id: sorted(Path(change.file_path).name for change in call.changes)
        for call in server_session.history.calls()
    }
    assert listed == {"slow": ["new", "y"], "other": ["new"]}
    await server_session.undo("undo 1")
    assert (outside / "new").read_text() == "1\n"
    await server_session.undo("undo 2")
    assert both(project) == before
    server_session.checkpoints.close()
