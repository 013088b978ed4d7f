"""Whatever a program passes as a call, a result comes back; and tools of its own count."""

from collections.abc import Mapping
from typing import Any

import pytest

from handaxe import Effects, Session, ToolCall, tool
from handaxe.app.session import get_parts
from handaxe.contract.faults import SetupError


class Odd:
    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


@pytest.mark.proves("PL-2")
@pytest.mark.parametrize(
    "words",
    [
        ("Read", "x"),
        ("Read", ["x"]),
        ("Read", 7),
        ("Read", b"x"),
        ("Read", {1: 2}),
        ("Read", {"file_path": object()}),
        (None,),
        (None, {"file_path": "a"}),
        (7, "x"),
        (b"Read",),
        ({},),
        ("",),
        ("\udc80",),
    ],
)
async def test_a_call_that_is_none_is_answered(words: Any, session: Session):
    result = await session.call(*words)
    assert result.code in {"call.bad_input", "call.unknown_tool"}
    result = await session.call(*words, file_path="a")
    assert not result.ok


@pytest.mark.parametrize(
    "calls",
    [
        [("Read",)],
        [()],
        [("Read", {}, 3)],
        [None],
        ["Read"],
        [7],
        [("Read", None)],
        [["Glob", "x"]],
        [{"tool": "Read"}],
        None,
        7,
        "Read",
    ],
)
async def test_calls_that_are_none_are_answered_one_by_one(calls: Any, session: Session):
    results = await session.call_many(calls)
    assert len(results) == 1
    assert results[0].code in {"call.bad_input", "call.unknown_tool"}


@pytest.mark.parametrize("call", [{"tool": "Read"}, (), ("Read", {}, 3), None, ({}, "Read")])
async def test_what_is_no_call_is_told_what_one_looks_like(call: Any, session: Session):
    (result,) = await session.call_many([call])
    kind = type(call[0] if isinstance(call, tuple) and len(call) == 2 else call).__name__
    assert result.text.startswith(f"There is no tool named '<{kind}>' here. A call is the name of")
    assert '("Read", {"file_path": "a.txt"})' in result.text
    not_calls: list[Any] = [call]
    (result,) = await session.run_many(not_calls)
    assert "take a `ToolCall`" in result.text


async def test_a_bad_call_leaves_the_others_alone(session: Session):
    asked: list[Any] = [("Glob", {"pattern": "*"}), ("Read",), None]
    results = await session.call_many(asked)
    assert [result.ok for result in results] == [True, False, False]


def make_call(*parts: Any) -> ToolCall:
    """A call whose parts may have any type."""
    return ToolCall(*parts)


@pytest.mark.parametrize(
    "call", [None, "Read", make_call(None, None, None), make_call(1, Odd(), 2)]
)
async def test_what_is_no_call_is_answered_too(call: Any, session: Session):
    assert not (await session.run(call)).ok
    assert [r.ok for r in await session.run_many([call])] == [False]


@tool(name="Read", effects=Effects.none(), replaces_builtin=True)
async def own_read(file_path: str) -> str:
    """Read it my way."""
    return f"mine: {file_path}"


@pytest.mark.parametrize("tools", [["full", own_read], [own_read], ["Bash", own_read]])
async def test_an_own_tool_stands_in_for_a_built_in_one(tools: Any, project):
    (project / "a").write_text("theirs\n")
    async with Session(project, tools=tools) as session:
        assert (await session.call("Read", file_path="a")).text == "mine: a"
        names = [found.name for found in get_parts(session).catalog.list_offered()]
        assert names.count("Read") == 1
        assert ("Glob" in names) == ("Bash" not in tools)
        assert any("'Read' replaces" in warning for warning in session.warnings)


@pytest.mark.parametrize(
    ("tools", "names"),
    [
        (["read-only", "Bash"], {"Glob", "Grep", "Read", "Bash"}),
        ("readonly", {"Glob", "Grep", "Read"}),
        ("readonly,Write", {"Glob", "Grep", "Read", "Write"}),
        (["readonly", "simple"], {"Glob", "Grep", "Read", "Bash", "Edit"}),
        ("", set()),
    ],
)
async def test_presets_and_names_add_up(tools: Any, names: set[str], project):
    async with Session(project, tools=tools) as session:
        assert {found.name for found in get_parts(session).catalog.list_offered()} == names


def test_an_unknown_name_beside_a_preset_is_a_start_error(project):
    with pytest.raises(SetupError, match=r"no tool or preset named 'Raed'. Did you mean 'Read'"):
        Session(project, tools=["read-only", "Raed"])


@pytest.mark.parametrize("allow", [(), ("AskUserQuestion",)])
async def test_nobody_is_questioned_where_nobody_may_be_asked(allow: tuple[str, ...], project):
    heard: list[Mapping[str, Any]] = []

    async def on_question(questions: Any):
        heard.append(questions)

    asked = {"question": "Which?", "header": "Which", "multiSelect": False}
    asked |= {"options": [{"label": n, "description": n} for n in "ab"]}
    async with Session(
        project, permission_mode="dontAsk", on_question=on_question, allow=allow
    ) as session:
        result = await session.call("AskUserQuestion", questions=[asked])
    assert result.code == "permission.denied"
    assert heard == []


@pytest.mark.parametrize(
    ("name", "given", "remedy"),
    [
        ("Read", {"file_path": "/etc/hostname"}, " Add the allow rule Read(//etc/**)."),
        ("Read", {"file_path": ".env"}, " Add the allow rule Read(/.env)."),
        (
            "Write",
            {"file_path": "a.txt", "content": "x"},
            "a.txt needs permission in dontAsk mode. Use acceptEdits mode or add the allow rule Edit(/a.txt).",
        ),
        ("Glob", {"pattern": "*"}, " To run it without asking, remove or narrow that rule."),
        ("measure", {}, " Add the allow rule measure."),
        ("Bash", {"command": "cat /etc/hostname"}, " Add the allow rule Read(//etc/**)."),
        (
            "Bash",
            {"command": "echo x > b; ls"},
            " Use acceptEdits mode or add the allow rule Edit(/b).",
        ),
    ],
)
async def test_where_nobody_is_asked_nobody_is_told_to_say_yes(
    project, name: str, given: dict[str, Any], remedy: str
):
    @tool
    async def measure() -> str:
        """Measure it now."""
        return "1"

    async with Session(
        project, permission_mode="dontAsk", ask=["Glob"], tools=["full", measure]
    ) as session:
        result = await session.call(name, given)
    assert result.code == "permission.denied"
    assert "approve" not in result.text
    assert result.text.endswith(remedy)
