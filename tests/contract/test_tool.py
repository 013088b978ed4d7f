"""What a tool has by default, and what a call of it can reach."""

from typing import Any

import msgspec
import pytest

from handaxe.contract.context import ToolContext, UndeclaredReachError
from handaxe.contract.effects import Effects
from handaxe.contract.permission_subjects import Access, PathSubject, TextSubject
from handaxe.contract.tool import Tool, ToolArgs


class WithPaths(ToolArgs):
    file_path: str
    path: str | None = None


class WithNone(ToolArgs):
    count: int = 3


class Derived(ToolArgs):
    name: str

    @property
    def path(self) -> str:
        return f"/below/{self.name}"


class Plain:
    def __init__(self, path: str) -> None:
        self.path = path


class Anything(Tool[Any]):
    """Takes any input."""


class Looking(Tool[Any]):
    """Only looks."""

    effects = Effects.none()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (WithPaths(file_path="a"), [("a", "file_path")]),
        (WithPaths(file_path="a", path="b"), [("a", "file_path"), ("b", "path")]),
        (Derived(name="x"), [("/below/x", "path")]),
        (Plain("c"), [("c", "path")]),
        (msgspec.defstruct("Other", [("notebook_path", str)])("n"), [("n", "notebook_path")]),
    ],
)
def test_a_tools_subjects_are_the_paths_of_its_input(args: Any, expected: list[tuple[str, str]]):
    tools: list[tuple[Tool[Any], Access]] = [(Anything(), "write"), (Looking(), "read")]
    for tool, access in tools:
        assert tool.subjects(args) == tuple(
            PathSubject(path, access, field) for path, field in expected
        )


@pytest.mark.parametrize(
    ("args", "text"), [(WithNone(), '{"count":3}'), ({"path": "a"}, '{"path":"a"}')]
)
def test_without_a_path_the_whole_input_is_the_subject(args: Any, text: str):
    assert Anything().subjects(args) == (TextSubject(text),)


def test_what_is_made_for_a_call_stands_before_what_all_are_offered():
    ports: dict[type[Any], Any] = {str: "everybody's", int: 1, list: []}
    reach = frozenset({str, int, float})
    ctx = ToolContext("c1", ports, reach, print, own={str: "this call's"})
    assert (ctx[str], ctx.find(str), ctx[int], ctx.find(float)) == ("this call's",) * 2 + (1, None)
    for ask in (ctx.__getitem__, ctx.find):
        with pytest.raises(UndeclaredReachError):
            ask(list)
