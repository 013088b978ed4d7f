"""What a call reads and writes decides what may run beside it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handaxe.contract.effects import Effects, Resource

PATHS = st.sampled_from(["/", "/p", "/p/a", "/p/a/b", "/p/ab", "/q"])
RESOURCES = st.lists(
    st.builds(Resource, st.sampled_from(["path", "state"]), PATHS), max_size=2
).map(tuple)
EFFECTS = st.builds(Effects, RESOURCES, RESOURCES, st.booleans(), st.booleans(), st.booleans())


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


@given(EFFECTS)
def test_only_what_changes_something_is_destructive(effects):
    assert not (effects.is_destructive and effects.is_read_only)


@pytest.mark.proves("TC-2")
def test_the_unknown_collides_with_everything_but_the_pure():
    for other in (Effects.none(), Effects.on("/a"), Effects.reading("/a"), Effects.unknown()):
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
        (Effects.on("/p/a"), Effects.none(), True),
        (Effects.on("/p/a"), Effects.pure(), False),
    ],
)
def test_collisions(first, second, expected):
    assert first.collides(second) is expected
