"""Numbers of lines after a session's own changes: where a shown line may be now."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.ports.files import FileVersion
from handaxe.session.line_numbering import Numbering
from handaxe.session.read_ledger import LineChange, ReadLedger


def version(digest: str) -> FileVersion:
    return FileVersion("/a", digest, 1, 1)


@pytest.mark.proves("FT-19")
def test_a_number_may_mean_the_line_it_was_and_the_line_it_is():
    numbering = Numbering()
    numbering.move([(5, 0, 2)])
    assert numbering.meant_by(4) == {4}
    assert numbering.meant_by(5) == {5, 7}
    numbering.move([(1, 2, 1), (10, 1, 3)])
    # Line 5 of the first numbering, of the second, and of today's.
    assert numbering.meant_by(5) == {6, 4, 5}
    # Line 1 made way; today's is meant.
    assert numbering.meant_by(1) == {1}


def test_lines_that_are_shown_again_mean_themselves():
    numbering = Numbering()
    numbering.move([(1, 0, 1)])
    numbering.show(10, 20)
    assert numbering.meant_by(15) == {15}
    assert numbering.meant_by(21) == {21, 22}
    numbering.lose()
    assert numbering.meant_by(15) is None
    numbering.show(10, 20)
    assert numbering.meant_by(15) == {15}
    assert numbering.meant_by(21) is None


def test_changes_that_move_nothing_change_no_number():
    numbering = Numbering()
    numbering.move([(1, 2, 2), (7, 1, 1)])
    assert numbering.meant_by(9) == {9}


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 2), st.integers(0, 3)), max_size=5))
def test_a_line_that_is_still_there_is_always_among_what_its_number_may_mean(moves):
    numbering = Numbering()
    lines = list(range(10))
    for at, went, came in moves:
        at, went = min(at, len(lines)), min(went, len(lines) - min(at, len(lines)))
        lines[at : at + went] = [-1] * came
        numbering.move([(at + 1, went, came)])
        for line in lines:
            if line >= 0:
                assert lines.index(line) + 1 in numbering.meant_by(line + 1)


def test_the_ledger_knows_numbers_only_of_files_that_were_shown_with_tags():
    announced = []
    ledger = ReadLedger(announced.append)
    ledger.saw(version("1"), total_lines=9)
    ledger.edited(version("2"), [LineChange(1, 0, 1)], content=None)
    assert ledger.meant_by("/a", 5) == {5}
    assert [event.moved for event in announced] == [None, None]
    ledger.saw(version("2"), total_lines=10, shown=(1, 10))
    ledger.edited(version("3"), [LineChange(1, 0, 1)], content=None)
    assert ledger.meant_by("/a", 5) == {5, 6}
    ledger.saw(version("3"), total_lines=11, lines=(4, 6), shown=(4, 6))
    assert ledger.meant_by("/a", 5) == {5}
    assert ledger.meant_by("/a", 7) == {7, 8}
    again = ReadLedger()
    for event in announced:
        again.replay(event)
    assert again.meant_by("/a", 5) == {5}
    assert again.meant_by("/a", 7) == {7, 8}
    # Somebody else's content: nothing is known but what is shown of it.
    ledger.saw(version("4"))
    assert ledger.meant_by("/a", 5) is None
    ledger.saw(version("5"), total_lines=20, lines=(5, 6), shown=(5, 6))
    assert ledger.meant_by("/a", 5) == {5}
    assert ledger.meant_by("/a", 7) is None
    ledger.saw(version("5"), total_lines=20, shown=(1, 20))
    assert ledger.meant_by("/a", 7) == {7}
    ledger.forget("/a")
    assert ledger.meant_by("/a", 7) == {7}
