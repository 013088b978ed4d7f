"""What a session keeps of every call is found again, and is small."""

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.session.call_fingerprints import CallFingerprints


def number(of: int) -> bytes:
    return of.to_bytes(8, "little")


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.binary(min_size=3, max_size=3))))
def test_what_was_kept_last_counts(kept):
    facts = CallFingerprints(3)
    for call_id, fact in kept:
        facts.keep(call_id, fact)
    expected = dict(kept)
    assert {call_id: facts.get(call_id) for call_id in "abcdefgh"} == {
        call_id: expected.get(call_id) for call_id in "abcdefgh"
    }


@pytest.mark.parametrize("others", [0, 1, 62, 63, 64, 65, 500])
def test_what_was_kept_last_counts_however_many_came_between(others):
    facts = CallFingerprints(8)
    for round_number in range(3):
        facts.keep("a", number(round_number))
        for n in range(others):
            facts.keep(f"{round_number}.{n}", number(n))
        assert facts.get("a") == number(round_number)
    for n in range(others):
        assert facts.get(f"0.{n}") == number(n)


def test_facts_that_look_like_the_mark_of_another_call_are_not_taken_for_it():
    facts = CallFingerprints(16)
    ids = [f"call {n}" for n in range(3000)]
    for call_id in ids:
        # Twice its own mark, and so that of a call in the same part.
        mark = hash(call_id).to_bytes(8, "little", signed=True)
        facts.keep(call_id, mark + mark)
    for call_id in ids:
        mark = hash(call_id).to_bytes(8, "little", signed=True)
        assert facts.get(call_id) == mark + mark


def test_bytes_of_a_fact_are_no_call():
    facts = CallFingerprints(16)
    wanted = hash("never made")
    neighbour = next(f"n{n}" for n in range(100_000) if hash(f"n{n}") % 256 == wanted % 256)
    facts.keep(neighbour, wanted.to_bytes(8, "little", signed=True) * 2)
    assert facts.get("never made") is None


def test_an_id_of_any_characters_is_kept():
    facts = CallFingerprints(8)
    facts.keep("\ud800", number(1))
    facts.keep("", number(2))
    assert (facts.get("\ud800"), facts.get("")) == (number(1), number(2))


def test_other_sizes_are_refused():
    with pytest.raises(ValueError, match="8 bytes per call are expected; got 3"):
        CallFingerprints(8).keep("a", b"123")


def test_twenty_thousand_calls_take_less_than_half_a_megabyte():
    facts = CallFingerprints(8)
    tracemalloc.start()
    try:
        for n in range(20_000):
            facts.keep(f"call_{n}", number(n))
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 500_000
    assert all(facts.get(f"call_{n}") == number(n) for n in range(20_000))
    assert facts.get("call_20000") is None
