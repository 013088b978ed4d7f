"""What a call reads and writes decides what may run beside it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import handaxe
from handaxe.contract.effects import SESSION_STATE, Effects, Resource

PATHS = st.sampled_from(["/", "/p", "/p/a", "/p/a/b", "/p/ab", "/q"])
STATE = st.sampled_from(["todos", "tasks", "mode", "own state"])
NAMES = st.sampled_from(["shop-db", "tickets", "Shop-DB", "/p", "todos"])
RESOURCES = st.lists(
    st.builds(Resource, st.just("path"), PATHS)
    | st.builds(Resource, st.just("state"), STATE)
    | st.builds(Resource, st.just("external"), NAMES),
    max_size=2,
).map(tuple)
SPARED = st.frozensets(STATE, max_size=2)
EFFECTS = st.builds(
    Effects, RESOURCES, RESOURCES, st.booleans(), st.booleans(), st.booleans(), spared=SPARED
)


class Visits(handaxe.State):
    """State of an own tool."""

    pages: int = 0


def overlap(first, second):
    return any(mine.overlaps(theirs) for mine in first for theirs in second)


@pytest.mark.proves("TC-3")
@given(EFFECTS, EFFECTS)
def test_colliding_is_mutual(first, second):
    assert first.collides(second) == second.collides(first)


@pytest.mark.proves("TC-3")
@given(EFFECTS, EFFECTS)
def test_two_calls_that_only_look_never_collide(first, second):
    if first.is_read_only and second.is_read_only:
        assert not first.collides(second)


@given(EFFECTS)
def test_what_changes_anything_collides_with_itself(effects):
    if not effects.is_read_only:
        assert effects.collides(effects)


@pytest.mark.proves("TC-3")
@given(EFFECTS, EFFECTS)
def test_calls_collide_exactly_where_one_writes_what_the_other_touches(first, second):
    named = overlap(first.writes, (*second.reads, *second.writes)) or overlap(
        second.writes, (*first.reads, *first.writes)
    )
    if named:
        assert first.collides(second)
    everything = (first.reads_everything, first.writes_everything)
    if not (named or any(everything) or second.reads_everything or second.writes_everything):
        assert not first.collides(second)


@given(EFFECTS, EFFECTS, EFFECTS)
def test_both_effects_together_collide_with_all_that_either_collides_with(first, second, third):
    both = first | second
    assert both.collides(third) >= (first.collides(third) or second.collides(third))
    assert both.is_read_only == (first.is_read_only and second.is_read_only)
    assert both.irreversible == (first.irreversible or second.irreversible)
    assert both.is_confined == (first.is_confined and second.is_confined)


@given(EFFECTS)
def test_only_what_changes_something_is_destructive(effects):
    assert not (effects.is_destructive and effects.is_read_only)


@given(EFFECTS)
def test_what_changes_something_outside_is_for_good_and_never_internal(effects):
    if any(what.kind == "external" for what in effects.writes):
        assert effects.is_destructive
        assert not effects.is_internal
        assert not effects.is_confined


@pytest.mark.proves("TC-2")
def test_the_unknown_collides_with_everything_but_the_pure():
    others = (Effects.none(), Effects.on("/a"), Effects.reading("/a"), Effects.unknown())
    outside = (Effects.external("shop-db", writes=True), Effects.external("db", writes=False))
    for other in (*others, *outside, *map(Effects.on_state, SESSION_STATE)):
        assert Effects.unknown().collides(other)
    assert not Effects.unknown().collides(Effects.pure())


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (Effects.on("/p/a"), Effects.on("/p/b"), False),
        (Effects.on("/p/a"), Effects.reading("/p/a"), True),
        (Effects.on("/p/a"), Effects.reading("/p"), True),
        (Effects.on("/p"), Effects.reading("/p/a/b"), True),
        (Effects.on("/p/a"), Effects.reading("/p/ab"), False),
        (Effects.on("/"), Effects.reading("/p"), True),
        (Effects.on_state("todos"), Effects.on_state("todos"), True),
        (Effects.on_state("todos"), Effects.on("/todos"), False),
        (Effects.on_state(Visits), Effects.on_state("own state"), True),
        (Effects.on("/p/a"), Effects.none(), True),
        (Effects.on("/p/a"), Effects.pure(), False),
        (Effects.external("db", writes=True), Effects.external("db", writes=True), True),
        (Effects.external("db", writes=True), Effects.external("db", writes=False), True),
        (Effects.external("db", writes=False), Effects.external("db", writes=False), False),
        (Effects.external("db", writes=True), Effects.external("mail", writes=True), False),
        (Effects.external("a", "b", writes=True), Effects.external("b", writes=False), True),
        (Effects.external("todos", writes=True), Effects.on_state("todos"), False),
        (Effects.external("/p", writes=True), Effects.on("/p"), False),
        (Effects.external("/p", writes=True), Effects.external("/p/a", writes=True), False),
        (Effects.external("db", writes=True), Effects.none(), True),
        (Effects.external("db", writes=True), Effects.pure(), False),
    ],
)
def test_collisions(first, second, expected):
    assert first.collides(second) is expected


OUTSIDE = ["database", "shop-db", "Todos", "todos ", "", "the mode", "\ud800", "todos\0"]


@pytest.mark.proves("TC-2")
@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize(
    "make",
    [
        Effects.on_state,
        lambda name: Effects.on_state("todos", name),
        lambda name: Effects(reads=(Resource("state", name),)),
        lambda name: Effects(writes=(Resource("state", name),)),
    ],
)
def test_state_that_is_not_the_sessions_is_refused_where_it_is_made(make, name):
    with pytest.raises(ValueError, match=r"not a state of the session.*Effects\.external\("):
        make(name)


@pytest.mark.parametrize("name", [5, None, b"todos", int, object(), ["todos"]])
def test_state_of_another_type_is_refused(name):
    with pytest.raises(TypeError, match=r"subclass of handaxe\.State"):
        Effects.on_state(name)


@pytest.mark.parametrize("name", ["", "  ", "\n", None, 5, b"db"])
def test_something_external_without_a_name_is_refused(name):
    with pytest.raises(ValueError, match="needs a name"):
        Effects.external(name, writes=True)


def test_whether_something_external_is_changed_has_to_be_said():
    with pytest.raises(TypeError, match="writes"):
        Effects.external("shop-db")  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("writes", [None, 0, 1, "", "no", [], object], ids=repr)
def test_what_is_neither_yes_nor_no_does_not_say_whether_it_writes(writes):
    with pytest.raises(TypeError, match="`writes` is True or False"):
        Effects.external("shop-db", writes=writes)


def test_no_state_at_all_is_not_taken_for_harmless():
    with pytest.raises(ValueError, match="needs a name"):
        Effects.on_state()


@pytest.mark.parametrize("make", [Effects.reading, Effects.on])
def test_a_path_may_be_an_object_and_is_nothing_else(make):
    assert make(Path("/p/a")) == make("/p/a")
    for wrong in (5, None, b"/p", ["/p"], Path):
        with pytest.raises(TypeError, match="paths as text"):
            make(wrong)
