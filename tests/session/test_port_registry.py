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
    ports = PortRegistry({TODOS: make})
    assert Todos in ports
    assert Todos in ports.keys()  # noqa: SIM118 - what a catalog looks at
    assert Wakeups not in ports
    assert len(ports) == 1
    assert list(ports) == [Todos]
    assert not make.made


def test_it_is_made_once():
    make = Maker()
    ports = PortRegistry({TODOS: make})
    assert ports[Todos] is ports.get(Todos) is dict(ports)[Todos]
    assert len(make.made) == len(ports) == 1


def test_what_is_not_offered_is_an_error_or_nothing():
    ports = PortRegistry({})
    assert ports.get(Todos) is None
    with pytest.raises(KeyError):
        ports[Todos]


@pytest.mark.parametrize("is_made", [True, False])
def test_the_later_offer_counts_whichever_way_it_is_given(is_made: bool):
    first, second = Maker(), Maker()
    ports = PortRegistry({TODOS: first})
    if is_made:
        assert ports[Todos] is first.made[0]
    ports.add({TODOS: second})
    assert ports[Todos] is second.made[0]
    assert len(ports) == 1
    third = ports[Todos] = Maker()()
    assert ports[Todos] is third
    assert len(ports) == 1


@pytest.mark.parametrize("is_made", [True, False])
def test_an_offer_can_be_taken_back(is_made: bool):
    ports = PortRegistry({TODOS: Maker()})
    if is_made:
        assert ports[Todos]
    del ports[Todos]
    assert Todos not in ports
    assert ports.pop(Todos, None) is None
