"""What undo could not put back is told before a command loses it."""

import os
import socket
from pathlib import Path

import pytest
from tests.undo.commanding import bounded, bounded_sh, open_session, prepare, run, whole_tree

from handaxe import Session
from handaxe.app.session import get_parts
from handaxe.contract.effects import Effects
from handaxe.undo import loss_check as loss

UNKNOWN = Effects.unknown()
LIMITED = {"undo": {"shell_max_files": 40, "shell_max_bytes": 50_000}}


async def find_loss(session: Session, effects: Effects, *paths: Path | str) -> str:
    return await get_parts(session).session_context.checkpoints.find_loss(
        effects, [str(path) for path in paths]
    )


@pytest.fixture
def opened(tree, tmp_path):
    (tree / "big.bin").write_bytes(b"x" * 1_000)

    def open_with(**settings) -> Session:
        return open_session(tree, tmp_path / "home", shell=bounded_sh, settings=settings)

    return open_with


@pytest.fixture(params=["before the first command", "after it", "kept ahead"])
async def used(request, tree, monkeypatch):
    """Whether roots were kept already; what is lost is the same."""
    if request.param == "kept ahead":
        monkeypatch.setattr(loss, "_MAX_LOOKED_AT", 3)

    async def use(session: Session) -> None:
        if request.param == "kept ahead":
            await prepare(session)
        if request.param == "after it":
            await run(session, tree, "eval true")

    return use


@pytest.mark.parametrize("name", [".", "deep", "link", "missing", "pipe", "a.txt", "deep/../deep/"])
async def test_what_undo_keeps_is_no_loss(opened, used, tree, name):
    async with opened() as session:
        await used(session)
        assert await find_loss(session, UNKNOWN, f"{tree}/{name}") == ""


@pytest.mark.parametrize(
    ("settings", "effects", "expected"),
    [
        ({"fileCheckpointingEnabled": False}, UNKNOWN,
         "Undo is turned off (fileCheckpointingEnabled: false)."),
        ({"fileCheckpointingEnabled": False}, Effects.none(), ""),
        ({"undo": {"shell_max_files": 0}}, UNKNOWN,
         "Undo of commands is turned off (undo.shell_max_files: 0)."),
        ({"undo": {"shell_max_files": 0}}, Effects.none(), ""),
    ],
)  # fmt: skip
async def test_undo_that_is_switched_off_keeps_nothing(opened, tree, settings, effects, expected):
    async with opened(**settings) as session:
        assert await find_loss(session, effects, tree / "deep") == expected
        assert await find_loss(session, effects, tree / "missing") == ""


async def test_more_files_than_the_limit_are_a_loss(opened, used, tree):
    (tree / "many").mkdir()
    for number in range(60):
        (tree / f"many/{number}").write_text("x")
    expected = (
        "many is too large; undo saves at most 40 files and 48.8 KB of the working directories."
    )
    async with opened(**LIMITED) as session:
        await used(session)
        for path in ("many", "many/7"):
            assert await find_loss(session, UNKNOWN, tree / "deep", tree / path) == expected
        assert (await find_loss(session, UNKNOWN, tree)).endswith(expected.removeprefix("many"))
        assert await find_loss(session, UNKNOWN, tree / "deep", tree / "a.txt") == ""


async def test_more_bytes_than_the_limit_are_a_loss(opened, used, tree):
    (tree / "build").mkdir()
    (tree / "build/large").write_bytes(b"x" * 60_000)
    async with opened(**LIMITED) as session:
        await used(session)
        said = await find_loss(session, UNKNOWN, tree / "build")
        assert said.startswith("build/large is too large; undo saves at most 40 files")
        assert await find_loss(session, UNKNOWN, tree / "deep") == ""


async def test_a_small_command_loses_nothing_in_roots_that_are_too_large(opened, tree):
    (tree / "build").mkdir()
    (tree / "build/large").write_bytes(b"x" * 60_000)
    async with opened(**LIMITED) as session:
        effects = bounded("rm -rf build", str(tree))
        before = whole_tree(tree)
        assert await find_loss(session, effects, tree / "build") == ""
        await run(session, tree, "rm -rf build")
        assert (await session.undo()).ok
        assert whole_tree(tree) == before


async def test_what_lies_outside_is_kept_only_where_the_writes_are_known(opened, used, tree):
    outside = tree.parent / "outside"
    outside.mkdir()
    (outside / "f").write_text("f\n")
    (tree / "way").symlink_to(outside)
    async with opened() as session:
        await used(session)
        assert await find_loss(session, UNKNOWN, tree / "way/f") == (
            f"{outside}/f is outside the working directories. "
            "Undo saves it only for commands with known writes."
        )
        assert await find_loss(session, UNKNOWN, tree / "way") == ""
        for command in ("rm way/f", "rm -r ../outside", "mv deep d; touch d/n; rm way/f"):
            effects = bounded(command, str(tree))
            assert await find_loss(session, effects, outside / "f") == "", command


async def test_what_is_too_large_outside_is_a_loss(opened, tree):
    outside = tree.parent / "outside"
    outside.mkdir()
    with (outside / "large").open("wb") as large:
        large.truncate(65 << 20)
    expected = "is too large; undo saves at most 5,000 files and 64 MB there."
    async with opened() as session:
        effects = bounded("rm -r ../outside", str(tree))
        assert await find_loss(session, effects, outside) == f"{outside} {expected}"
        assert (
            await find_loss(session, Effects.on(str(outside)), outside) == f"{outside} {expected}"
        )


async def test_special_files_and_files_with_other_names_outside_are_a_loss(opened, used, tree):
    outside = tree.parent / "outside"
    outside.mkdir()
    os.link(tree / "a.txt", outside / "twin")
    short = Path(os.path.relpath(tree / "deep/socket"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(short))
        async with opened() as session:
            await used(session)
            for path in (tree, tree / "deep"):
                assert await find_loss(session, UNKNOWN, path) == (
                    "deep/socket is a socket or a device; undo cannot recreate it."
                )
            effects = bounded("rm ../outside/twin", str(tree))
            assert await find_loss(session, effects, outside / "twin") == (
                f"Undo does not save {outside}/twin (a hard-linked file)."
            )


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
async def test_what_cannot_be_read_is_a_loss(opened, used, tree):
    (tree / "deep/x.txt").chmod(0)
    async with opened() as session:
        await used(session)
        assert await find_loss(session, UNKNOWN, tree / "deep") == (
            "deep/x.txt cannot be read, so undo does not save it."
        )


async def test_the_data_directory_of_handaxe_is_a_loss(tree):
    async with open_session(tree, tree / "data", shell=bounded_sh) as session:
        await run(session, tree, "touch x")
        assert await find_loss(session, UNKNOWN, tree) == (
            "Undo does not save data (the data directory of handaxe)."
        )
        assert await find_loss(session, UNKNOWN, tree / "deep") == ""


async def test_looking_keeps_nothing_in_small_roots(opened, tree, tmp_path):
    async with opened() as session:
        assert await find_loss(session, UNKNOWN, tree) == ""
        assert not (tmp_path / "home/snapshots").exists()


async def test_a_command_that_runs_meanwhile_keeps_its_changes(opened, tree):
    before = whole_tree(tree)
    async with opened() as session:
        checkpoints = get_parts(session).session_context.checkpoints
        await checkpoints.before("slow", "Bash", UNKNOWN)
        (tree / "a.txt").write_text("changed\n")
        assert await find_loss(session, UNKNOWN, tree) == ""
        (tree / "deep/x.txt").unlink()
        await checkpoints.after("slow")
        [call] = session.history()
        assert len(call.changes) == 3
        assert (await session.undo(force=True)).ok
        assert whole_tree(tree) == before
