"""Hosts that answer, ask and fail in ways nobody foresaw: no nonsense is a yes, no exception leaves."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, cast

import pytest

from handaxe import Allow, Ask, Deny, Effects, Session, Tool, ToolArgs, ToolCall, ToolResult, tool
from handaxe.app.session import get_parts

pytestmark = pytest.mark.proves("PL-2")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("planned")

    __repr__ = __str__


@tool
async def act(x: Any = None) -> str:
    """Act on it now."""
    return "acted"


def answering(answer: object):
    async def on_ask(_request: object) -> Any:
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return on_ask


def word(kind: type, **parts: object) -> Any:
    return kind(**cast("Any", parts))


@pytest.mark.parametrize(
    "answer",
    [
        None, True, "allow", {"behavior": "allow"}, Allow, [Allow()], Ask("x"), Mute(),
        word(Allow, remember="for ever", rules=("act",)),
        word(Allow, rules=5, remember="always"),
        word(Allow, rules=(5,), remember="session"),
        word(Allow, reason=5),
        word(Allow, input=5),
        word(Allow, input={"x": object()}),
        word(Deny, reason=5),
        word(Deny, reason="x", interrupt="yes"),
        asyncio.CancelledError(), SystemExit(0), ValueError("x"),
    ],
    ids=lambda answer: type(answer).__name__,
)  # fmt: skip
async def test_an_answer_that_is_none_allows_nothing_now_or_later(project, answer):
    async with Session(project, tools=[act], on_ask=answering(answer)) as session:
        first = await session.call("act")
        assert get_parts(session).recorder.result_of(first.id) == first
        json.dumps(first.to_json(), ensure_ascii=False).encode()
    assert first.code == "permission.denied"
    assert not list(Path(os.environ["HANDAXE_CONFIG_HOME"]).rglob("*.json"))
    async with Session(project, tools=[act]) as session:
        assert (await session.call("act")).code == "permission.asked"


async def test_words_with_half_a_character_are_told_in_full(project):
    async with Session(project, tools=[act], on_ask=answering(Deny("no \ud800"))) as session:
        result = await session.call("act")
    assert result.text == "The call was refused. no \\ud800"


async def test_a_classifier_whose_answer_is_none_leaves_the_question_to_a_person(project):
    async def classify(_request: object) -> Any:
        return word(Allow, remember="for ever")

    async with Session(
        project, tools=[act], permission_mode="auto", classifier=classify
    ) as session:
        assert (await session.call("act")).code == "permission.asked"


def tower() -> list[Any]:
    made: list[Any] = []
    for _ in range(3_000):
        made = [made]
    return made


def ring() -> list[Any]:
    made: list[Any] = []
    made += [made] * 5
    return made


@pytest.mark.parametrize(
    "value",
    [tower(), ring(), Mute(), 10**5_000, float("nan"), "\ud800", {1}, b"x", {"a": Mute()}],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("watched", [False, True])
async def test_an_input_that_nobody_can_write_down_is_refused(project, value, watched):
    async def listen(event: dict[str, Any]) -> None:
        json.dumps(event["tool_input"], default=lambda _: "")

    hooks = {"PreToolUse": [listen]} if watched else None
    async with Session(
        project, tools=[act], permission_mode="bypassPermissions", hooks=hooks
    ) as session:
        call = ToolCall("mine", "act", {"x": value})
        results = [await session.run(call), *(await session.call_many([("act", {"x": value})] * 2))]
        assert {result.code for result in results} == {"call.bad_input"}
        assert (await session.run(call)).code == "call.bad_input"
        assert get_parts(session).recorder.result_of("mine") == results[0]


class NoArgs(ToolArgs):
    pass


def fails(*_: object) -> Any:
    raise Mute


async def fails_later(*_: object) -> Any:
    raise Mute


@pytest.mark.parametrize(
    ("method", "failing"),
    [
        ("effects_of", fails), ("subjects", fails), ("situate", fails_later),
        ("validate", fails_later), ("decide", fails_later), ("call", fails_later),
    ],
)  # fmt: skip
async def test_a_tool_that_fails_without_words_has_a_result(project, method, failing):
    async def call(self: object, args: object, ctx: object) -> ToolResult:
        return ToolResult("x")

    made = type("Silent", (Tool,), {"args_type": NoArgs, "call": call, method: failing})
    async with Session(project, tools=[made], permission_mode="bypassPermissions") as session:
        result = await session.call("Silent")
    assert result.code == "internal.error"
    assert "Mute: it does not say why" in result.text


class Text(str):
    """As libraries that read web pages or tables hand it out."""


class Number(int):
    pass


class Share(float):
    pass


class Fields(dict[str, object]):
    pass


@tool(effects=Effects.pure())
async def kinds(text: str, number: int = 0, share: float = 0.0, more: object = None) -> str:
    """Name the classes of what arrives."""
    return " ".join(type(value).__name__ for value in (text, number, share, more))


async def test_texts_and_numbers_of_classes_of_their_own_are_what_they_are(project):
    given = Fields({Text("text"): Text("é"), "number": Number(3), "share": Share(0.5)})
    given["more"] = Fields({Text("é"): [Text("ü"), Number(4)]})
    async with Session(project, tools=[kinds]) as session:
        result = await session.call(Text("kinds"), given)
        unknown = await session.call(Text("é"), {})
        missing = await session.call("Read", file_path=Text("é.txt"))
        again = await session.run(ToolCall(Text("é"), Text("kinds"), {"text": Text("é")}))
        log = get_parts(session).pipeline_context.transcript_path
    assert (result.text, result.ok) == ("str int float dict", True)
    assert (unknown.code, missing.code) == ("call.unknown_tool", "file.not_found")
    assert (type(again.id), type(again.tool), again.ok) == (str, str, True)
    events = [json.loads(line)["event"] for line in Path(log).read_text().splitlines()]
    started = next(event for event in events if event["type"] == "call_started")
    more = {"é": ["ü", 4]}
    assert started["input"] == {"text": "é", "number": 3, "share": 0.5, "more": more}
