"""What a session offers its tools: made when asked for, and only once."""

import pytest

from handaxe.session.jobs import Wakeups
from handaxe.session.port_registry import PortRegistry
from handaxe.session.todos import Todos

TODOS = "handaxe.session.todos.Todos"


class Maker:
    """Makes todo lists, and counts them."""

    def __init__(self) -> None:
        self.made: list[Todos] = []

    def __call__(self) -> Todos:
        self.made.append(Todos(lambda _: None))
        return self.made[-1]


def test_what_nobody_asked_for_is_there_and_not_made():
    make = Maker()
    offers = PortRegistry({TODOS: make})
    assert Todos in offers
    assert Todos in offers.keys()  # noqa: SIM118 - what a catalog looks at
    assert Wakeups not in offers
    assert len(offers) == 1
    assert list(offers) == [Todos]
    assert not make.made


def test_it_is_made_once():
    make = Maker()
    offers = PortRegistry({TODOS: make})
    assert offers[Todos] is offers.get(Todos) is dict(offers)[Todos]
    assert len(make.made) == len(offers) == 1


def test_what_is_not_offered_is_an_error_or_nothing():
    offers = PortRegistry({})
    assert offers.get(Todos) is None
    with pytest.raises(KeyError):
        offers[Todos]


@pytest.mark.parametrize("is_made", [True, False])
def test_the_later_offer_counts_whichever_way_it_is_given(is_made: bool):
    first, second = Maker(), Maker()
    offers = PortRegistry({TODOS: first})
    if is_made:
        assert offers[Todos] is first.made[0]
    offers.add({TODOS: second})
    assert offers[Todos] is second.made[0]
    assert len(offers) == 1
    third = offers[Todos] = Maker()()
    assert offers[Todos] is third
    assert len(offers) == 1


@pytest.mark.parametrize("is_made", [True, False])
def test_an_offer_can_be_taken_back(is_made: bool):
    offers = PortRegistry({TODOS: Maker()})
    if is_made:
        assert offers[Todos]
    del offers[Todos]
    assert Todos not in offers
    assert offers.pop(Todos, None) is None
