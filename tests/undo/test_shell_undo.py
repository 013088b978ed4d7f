"""What a command changed is put back by one undo, to the byte, whatever the command was."""

import os
import shlex
import sys

import pytest
from tests.undo.commanding import open_session, run, whole_tree

from handaxe.undo.snapshot import tree as tree_module
from handaxe.undo.snapshot.tree import Tree

COMMANDS = {
    "rm -rf of everything": "rm -rf -- ./* .[!.]*",
    "rm -rf of one directory": "rm -rf deep",
    "sed -i": "sed -i s/one/uno/ a.txt",
    "append": "echo more >> a.txt",
    "truncate in place": ": > a.txt",
    "same size, same time": "touch -r a.txt ref; printf 'ONE\\n' > a.txt; touch -r ref a.txt; rm ref",
    "mv of a file": "mv a.txt b.txt",
    "mv over a file": "mv a.txt deep/x.txt",
    "mv of a directory": "mv deep elsewhere",
    "two directories swap names": "mv deep t; mv empty deep; mv t empty",
    "a directory becomes a link": "mv deep real; ln -s real deep",
    "a file becomes a directory": "rm a.txt; mkdir -p a.txt/b; echo x > a.txt/b/c",
    "a link becomes a directory": "rm dangling; mkdir -p dangling/b; echo x > dangling/b/c",
    "a FIFO becomes a directory": "rm pipe; mkdir pipe; echo x > pipe/in",
    "a file becomes a repository": "rm big.bin; git init -q big.bin",
    "a directory becomes a file": "rm -r deep; echo flat > deep",
    "a link is retargeted": "ln -sfn deep link",
    "a link becomes a file": "rm link; echo real > link",
    "modes of files": "chmod 600 a.txt; chmod 755 deep/x.txt",
    "modes of directories": "chmod 700 deep; chmod 711 empty",
    "everything read-only": "chmod -R a-w .",
    "a new hard link": "ln a.txt twin2",
    "a broken hard link": "rm twin; cp a.txt twin",
    "writing through a hard link": "echo changed > twin",
    "a hard link moved, its name taken, the file written": (
        "mv a.txt empty/a; echo q > a.txt; echo more >> twin"
    ),
    "the other hard link moved, its name taken, the file written": (
        "mv twin empty/a; echo q > twin; echo more >> a.txt"
    ),
    "a hard link becomes a directory, the file is written": (
        "mv a.txt b.txt; mkdir a.txt; touch a.txt/in; echo more >> twin"
    ),
    "a hard link is replaced, the file is written": (
        "cp a.txt new; mv new a.txt; echo more >> twin; ln twin deep/third"
    ),
    "both hard links gone": "rm a.txt twin",
    "replacing a file by a hard link": "ln -f deep/x.txt big.bin",
    "an empty directory goes": "rmdir empty",
    "a directory made again": "rmdir empty; mkdir empty; echo 2 > empty/f",
    "a full directory made again": "rm -r deep; mkdir -p deep/er; echo 2 > deep/er/z",
    "deep new directories": "mkdir -p n/e/w/s; echo x > n/e/w/s/f",
    "a FIFO": "mkfifo pipe2; rm pipe",
    "a large file": "head -c 300000 /dev/zero > big.bin; rm sparse",
    "odd names": "rm -f ./*$'\\n'*; rm -f $'caf\\xe9'; touch -- '-rf' ' ' $'new\\xff'",
    "a failing script": "set -e; echo x > a.txt; rm -r deep; false; echo never",
    "nothing": "true",
    "touch alone": "touch a.txt",
}


@pytest.mark.proves("SH-8", "SS-4")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
async def test_one_undo_puts_back_what_a_command_changed(tree, tmp_path, command):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, command)
        after = whole_tree(tree)
        undone = await session.undo()
        if before == after:
            assert undone.code == "undo.nothing"
            return
        assert undone.ok, undone.text
        assert whole_tree(tree) == before
        redone = await session.undo(redo=True)
        assert redone.ok, redone.text
        assert whole_tree(tree) == after
        again = await session.undo()
        assert again.ok, again.text
        assert whole_tree(tree) == before


async def test_each_of_several_commands_is_undone_by_itself(tree, tmp_path):
    trees = [whole_tree(tree)]
    async with open_session(tree, tmp_path / "home") as session:
        for command in ("echo 2 >> a.txt", "rm -rf deep", "mv a.txt deep", "mkdir x; mv deep x"):
            await run(session, tree, command)
            trees.append(whole_tree(tree))
        trees.pop()
        while trees:
            undone = await session.undo()
            assert undone.ok, undone.text
            assert whole_tree(tree) == trees.pop()


# Directories are made until one gets the inode that the old one had.
MADE_AGAIN = """
inode=$(stat -c %i empty); rm -r empty
for n in $(seq 500); do mkdir "t$n"; [ "$(stat -c %i "t$n")" = "$inode" ] && break; done
mv "t$n" empty; rm -rf t[0-9]*; echo "$1" > empty/f
"""


async def test_a_directory_made_again_is_another_one_even_with_the_same_inode(tree, tmp_path):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, f"set -- first; {MADE_AGAIN}")
        between = whole_tree(tree)
        await run(session, tree, f"set -- second; {MADE_AGAIN}; echo more > empty/g")
        assert (await session.undo()).ok
        assert whole_tree(tree) == between
        assert (await session.undo()).ok
        assert whole_tree(tree) == before


# The very name is made again and again, until the directory has the inode that was given up.
IN_ITS_PLACE = """
import os, sys
path = sys.argv[1]
inode = os.lstat(path).st_ino
os.remove(path)
os.mkdir(path)
others = [f"{path}.{n}" for n in range(200)]
while others and os.lstat(path).st_ino != inode:
    os.rename(path, others.pop())
    os.mkdir(path)
os.system(f"rm -rf {path}.*")
os.makedirs(f"{path}/x/y")
for name in ("in", "x/g", "x/y/f"):
    open(f"{path}/{name}", "w").write("x")
"""


@pytest.mark.parametrize("name", ["big.bin", "link", "dangling", "pipe"])
async def test_a_directory_that_took_the_inode_of_what_it_replaced_is_looked_into(
    tree, tmp_path, name
):
    before = whole_tree(tree)
    command = shlex.join([sys.executable, "-c", IN_ITS_PLACE, name])
    async with open_session(tree, tmp_path / "home") as session:
        for _ in range(3):
            await run(session, tree, command)
            after = whole_tree(tree)
            assert {
                os.fsencode(f"{name}/{path}") for path in ("in", "x/g", "x/y/f")
            } <= after.keys()
            for expected, redo in ((before, False), (after, True), (before, False)):
                undone = await session.undo(redo=redo)
                assert undone.ok, undone.text
                assert whole_tree(tree) == expected


@pytest.mark.parametrize("name", ["big.bin", "link", "dangling", "pipe"])
def test_a_look_lists_a_directory_whatever_had_its_inode_before(tree, name):
    known = Tree(max_entries=1000)
    known.follow([str(tree)])
    known.look()
    os.remove(tree / name)
    (tree / name / "x/y").mkdir(parents=True)
    (tree / name / "x/y/f").write_text("x")
    # What many file systems do, and not every time.
    known.directories[str(tree)][name].ino = (tree / name).stat().st_ino
    found = {change.path: change for change in known.look()}
    known.close()
    assert found.keys() >= {f"{tree}/{name}{path}" for path in ("", "/x", "/x/y", "/x/y/f")}


async def test_a_command_and_an_edit_are_undone_in_turn(tree, tmp_path):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "echo two >> big.txt")
        await session.call("Read", file_path=str(tree / "big.txt"))
        edited = await session.call(
            "Edit", file_path=str(tree / "big.txt"), old_string="two", new_string="three"
        )
        assert edited.ok, edited.text
        await run(session, tree, "echo four >> big.txt")
        for expected in ("three\n", "two\n"):
            assert (await session.undo()).ok
            assert (tree / "big.txt").read_text() == expected
        assert (await session.undo()).ok
        assert whole_tree(tree) == before


async def test_what_somebody_else_changed_since_stops_the_undo(tree, tmp_path):
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "echo two >> a.txt; echo new > b.txt")
        (tree / "a.txt").write_text("mine\n")
        undone = await session.undo()
        assert undone.code == "undo.conflict"
        assert "a.txt" in undone.text
        assert (tree / "b.txt").exists()
        assert (await session.undo(force=True)).ok
        assert (tree / "a.txt").read_text() == "one\n"
        assert not (tree / "b.txt").exists()


async def test_what_somebody_else_changed_between_two_commands_belongs_to_neither(tree, tmp_path):
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "echo two >> a.txt")
        (tree / "mine.txt").write_text("mine\n")
        await run(session, tree, "echo three >> a.txt")
        assert (await session.undo()).ok
        assert (await session.undo()).ok
        assert (tree / "a.txt").read_text() == "one\n"
        assert (tree / "mine.txt").read_text() == "mine\n"


async def test_a_later_session_undoes_a_command(tree, tmp_path):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home", "first") as session:
        await run(session, tree, "rm -rf deep a.txt; chmod 700 empty")
    async with open_session(tree, tmp_path / "home", "first") as session:
        [call] = session.history()
        assert {change.change for change in call.changes} == {"deleted", "mode"}
        assert (await session.undo()).ok
    assert whole_tree(tree) == before


async def test_a_second_session_starts_from_what_the_first_one_kept(tree, tmp_path):
    home = tmp_path / "home"
    async with open_session(tree, home) as session:
        await run(session, tree, "true")
    [store] = (home / "snapshots").iterdir()
    kept = sum(pack.stat().st_size for pack in store.glob("*.pack"))
    async with open_session(tree, home) as session:
        await run(session, tree, "rm -rf deep a.txt big.bin")
        assert (await session.undo()).ok
        assert sum(pack.stat().st_size for pack in store.glob("*.pack")) < 2.5 * kept
    assert not list(store.glob("*.manifest"))


@pytest.mark.proves("SH-8")
async def test_directories_too_big_to_remember_are_named_and_the_rest_is_undone(tree, tmp_path):
    (tree / "huge/inner").mkdir(parents=True)
    (tree / "huge/inner/blob").write_bytes(os.urandom(500_000))
    limits = {"undo": {"shell_max_bytes": 400_000}}
    async with open_session(tree, tmp_path / "home", settings=limits) as session:
        result = await session.call("sh", command="rm -rf huge deep", cwd=str(tree))
        [note] = result.notes
        assert f"{tree}/huge/inner/blob (too much to remember)" in note
        assert session.history()[0].left_out == (f"{tree}/huge/inner/blob",)
        undone = await session.undo()
        assert undone.ok, undone.text
        assert any("huge/inner/blob" in note for note in undone.notes)
    assert (tree / "deep/er/y.txt").read_text() == "y\n" * 1000
    assert (tree / "huge/inner").is_dir()


async def test_too_many_files_are_left_out_as_a_directory(tree, tmp_path):
    (tree / "many").mkdir()
    for number in range(300):
        (tree / f"many/{number}").touch()
    limits = {"undo": {"shell_max_files": 100}}
    async with open_session(tree, tmp_path / "home", settings=limits) as session:
        result = await session.call("sh", command="rm -rf many deep", cwd=str(tree))
        assert f"{tree}/many (too much to remember)" in result.notes[0]
        assert (await session.undo()).ok
    assert (tree / "deep/x.txt").exists()


async def test_nothing_is_kept_where_that_is_switched_off(tree, tmp_path):
    limits = {"undo": {"shell_max_files": 0}}
    async with open_session(tree, tmp_path / "home", settings=limits) as session:
        await run(session, tree, "rm -rf deep")
        assert (await session.undo()).code == "undo.nothing"
    assert not (tmp_path / "home/snapshots").exists()


async def test_the_data_directory_in_a_project_is_not_part_of_it(tree):
    before = whole_tree(tree)
    async with open_session(tree, tree / ".handaxe-data") as session:
        await run(session, tree, "rm -rf deep")
        assert (await session.undo()).ok
        assert whole_tree(tree, without=(".handaxe-data",)) == before


async def test_without_watches_every_look_is_a_whole_one(tree, tmp_path, monkeypatch):
    monkeypatch.setattr(tree_module, "can_be_watched", lambda _place: False)
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "touch -r a.txt ref; printf 'ONE\n' > a.txt; touch -r ref a.txt")
        await run(session, tree, "rm -rf deep ref; mv empty full; ln -sfn x link")
        assert (await session.undo()).ok
        assert (await session.undo()).ok
        assert whole_tree(tree) == before


async def test_a_root_that_is_removed_comes_back(tree, tmp_path):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree.parent, f"rm -rf {tree}")
        assert not tree.exists()
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before


async def test_thousands_of_files_come_back_and_go_again(tree, tmp_path):
    for number in range(300):
        place = tree / f"many/{number % 30}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"{number}.txt").write_text(f"{number}\n" * 100)
        (place / f"{number}.txt").chmod(0o640 if number % 2 else 0o600)
    (tree / "many/0").chmod(0o500)
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "chmod u+w many/0; rm -rf many; cp -r deep new; touch new/{1..99}")
        after = whole_tree(tree)
        for expected, redo in ((before, False), (after, True), (before, False)):
            result = await session.undo(redo=redo)
            assert result.ok, result.text
            assert whole_tree(tree) == expected


async def test_many_files_are_not_put_where_something_else_is_by_now(tree, tmp_path):
    (tree / "many").mkdir()
    for number in range(100):
        (tree / f"many/{number}").write_text(f"{number}\n")
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "rm -rf many")
        (tree / "many").write_text("a file now\n")
        undone = await session.undo()
        assert undone.code == "undo.conflict"
        assert (tree / "many").read_text() == "a file now\n"
        assert (await session.undo(force=True)).ok
        assert (tree / "many/42").read_text() == "42\n"


async def test_more_changes_than_the_system_can_tell_are_found_all_the_same(tree, tmp_path):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "true")
        await run(session, tree, "mkdir n; cd n; touch {1..9000}; rm {1..8000}; rm ../a.txt")
        assert len(whole_tree(tree)) > 1000
        assert (await session.undo()).ok
        assert whole_tree(tree) == before


async def test_a_directory_that_somebody_uses_by_now_is_left_and_said(tree, tmp_path):
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, "mkdir made; echo 1 > made/by-command; rm a.txt")
        (tree / "made/mine").write_text("mine\n")
        undone = await session.undo()
        assert undone.ok, undone.text
        assert undone.notes == (f"{tree}/made was not changed: it contains other files now.",)
        assert sorted(os.listdir(tree / "made")) == ["mine"]
        assert (tree / "a.txt").read_text() == "one\n"


OLD_KINDS = ["a.txt", "big.bin", "link", "dangling", "pipe"]


@pytest.mark.parametrize("name", OLD_KINDS)
async def test_somebody_elses_file_in_a_directory_that_has_to_give_way_stops_the_undo(
    tree, tmp_path, name
):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, f"rm {name}; mv deep {name}; rm .hidden")
        mine = tree / name / "er/mine"
        mine.write_text("mine\n")
        after = whole_tree(tree)
        for _ in range(2):
            undone = await session.undo()
            assert undone.code == "undo.conflict"
            assert f"{tree}/{name}: {mine} is in it now" in undone.text
            assert whole_tree(tree) == after
        mine.unlink()
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before


@pytest.mark.parametrize("name", OLD_KINDS)
@pytest.mark.parametrize("more", [0, 100], ids=["few paths", "many paths"])
async def test_what_an_undo_left_for_somebody_elses_file_is_put_back_by_a_later_one(
    tree, tmp_path, name, more
):
    before = whole_tree(tree)
    async with open_session(tree, tmp_path / "home") as session:
        await run(session, tree, f"rm {name}; mv deep {name}; touch .hidden.{{0..{more}}}")
        mine = tree / name / "er/mine"
        mine.write_text("mine\n")
        after = whole_tree(tree)
        for _ in range(2):
            undone = await session.undo(force=True)
            assert undone.ok, undone.text
            assert undone.notes[-1] == (
                f"{tree}/{name} was not changed: it contains other files now. "
                "Move that away, then undo again."
            )
            assert (mine.read_text(), (tree / "deep/x.txt").read_text()) == ("mine\n", "x\n")
        assert (await session.undo()).code == "undo.conflict"
        assert (await session.undo(redo=True)).ok
        assert whole_tree(tree) == after
        assert (await session.undo(force=True)).ok
        mine.unlink()
        undone = await session.undo()
        assert undone.ok, undone.text
        assert whole_tree(tree) == before
        assert (await session.undo()).code == "undo.nothing"
