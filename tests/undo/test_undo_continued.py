"""An undo that was killed is continued by the next one, wherever it was killed and how often."""

import asyncio
from collections.abc import Iterator

import pytest
from tests.undo.killed_undo import (
    REDO,
    UNDO,
    Place,
    change_kinds,
    find_temporary,
    make_place,
    remove,
)
from tests.undo.undoable import RENAMES, open_session


@pytest.fixture
def place() -> Iterator[Place]:
    with make_place() as made:
        yield made


@pytest.mark.proves("SS-4", "SH-8")
@pytest.mark.parametrize(("first", "second"), [(1, 30), (40, 15)])
def test_the_third_run_finishes_what_two_kills_at_renames_left(place, first, second):
    before = remove(place, files=60)
    assert not place.run(UNDO, first, RENAMES)
    assert place.find() != before
    assert not place.run(UNDO, second, RENAMES)
    assert place.find() != before
    place.finish(UNDO)
    assert place.find() == before


@pytest.mark.parametrize(("first", "second"), [(100, 500), (400, 150)])
def test_the_third_run_finishes_what_two_kills_left(place, first, second):
    before = remove(place, files=60)
    assert not place.run(UNDO, first)
    assert not place.run(UNDO, second)
    place.finish(UNDO)
    assert place.find() == before
    assert not find_temporary(place.root)


@pytest.mark.parametrize("recovering", [60, 170])
def test_a_kill_while_the_first_one_is_recovered_from_changes_nothing(place, recovering):
    before = remove(place, files=60)
    assert not place.run(UNDO, 30, RENAMES)
    assert not place.run(UNDO, recovering, from_start=True)
    place.finish(UNDO)
    assert place.find() == before
    assert not find_temporary(place.root)


@pytest.mark.parametrize("step", [23, 61])
def test_paths_of_another_kind_are_put_back_after_any_number_of_kills(place, step):
    before = change_kinds(place)
    kill_at = step
    while not place.run(UNDO, kill_at):
        kill_at += step
    place.finish_if_left(UNDO)
    assert place.find() == before


def test_a_redo_takes_back_all_runs_of_a_continued_undo(place):
    before = remove(place, files=60)
    after = place.find()
    assert not place.run(UNDO, 30, RENAMES)
    assert place.find() not in (before, after)
    place.finish(UNDO)
    assert not place.run(REDO, 200)
    place.finish(REDO)
    assert place.find() == after
    place.finish(UNDO)
    assert place.find() == before


def test_a_continued_undo_can_be_redone_any_number_of_times(place):
    before = remove(place, files=60)
    after = place.find()
    assert not place.run(UNDO, 30, RENAMES)
    for _ in range(3):
        place.finish(UNDO)
        assert place.find() == before
        place.finish(REDO)
        assert place.find() == after


def test_an_undo_after_a_redo_of_a_killed_one_can_be_redone(place):
    before = remove(place, files=60)
    after = place.find()
    assert not place.run(UNDO, 30, RENAMES)
    for _ in range(2):
        place.finish(REDO)
        assert place.find() == after
        place.finish(UNDO)
        assert place.find() == before


@pytest.mark.parametrize("is_first_killed", [False, True])
def test_an_undo_after_a_killed_redo_can_be_redone_whole(place, is_first_killed):
    before = remove(place, files=60)
    after = place.find()
    if is_first_killed:
        assert not place.run(UNDO, 30, RENAMES)
    place.finish(UNDO)
    assert not place.run(REDO, 30, ("unlink", "rmdir"))
    assert place.find() not in (before, after)
    for _ in range(2):
        place.finish(UNDO)
        assert place.find() == before
        place.finish(REDO)
        assert place.find() == after


def test_an_undo_that_was_killed_can_be_taken_back_instead(place):
    remove(place, files=60)
    after = place.find()
    assert not place.run(UNDO, 30, RENAMES)
    assert place.find() != after
    place.finish(REDO)
    assert place.find() == after


def test_what_somebody_wrote_between_the_runs_is_not_overwritten(place):
    remove(place, files=60)
    assert not place.run(UNDO, 30, RENAMES)
    made = next(path for path in sorted(place.root.glob("top/many*/*.txt")))
    made.write_text("mine\n")

    async def undo() -> None:
        async with open_session(place.root, place.home) as session:
            [first, killed] = session.history()
            assert (killed.undoes, killed.broken_off) == ((first.call_id,), True)
            for wanted in ({}, {"call_id": first.call_id}):
                refused = await session.call("Undo", wanted)
                assert refused.code == "undo.conflict", refused.text
                assert made.name in refused.text
                assert made.read_text() == "mine\n"

    asyncio.run(undo())


def test_an_undo_killed_after_its_last_step_counts_as_done(place):
    file = place.root / "a.txt"
    file.write_text("one\n")
    before = place.find()
    place.command("echo two > a.txt")
    place.command("echo b > b.txt")
    syncs = 0
    while (place.root / "b.txt").exists():
        assert not place.run(UNDO, syncs, ("fsync", "fdatasync"))
        syncs += 1
    place.finish(UNDO)
    assert place.find() == before
