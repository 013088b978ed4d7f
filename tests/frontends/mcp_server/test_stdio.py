"""The server on stdio, spoken to line by line: every revision, and every way to get it wrong."""

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time

import msgspec
import pytest
from tests.expected_types import require
from tests.frontends.mcp_server.raw_client import ENVELOPE, FORMS, stopped
from tests.waiting import HANG_S

from handaxe import Effects, Session, tool
from handaxe.app.session import get_parts
from handaxe.frontends.mcp_server.protocol import HANDSHAKE_REVISIONS
from handaxe.frontends.mcp_server.request_params import parse_roots
from handaxe.frontends.mcp_server.stdio_transport import MAX_LINE_BYTES, LineSplitter
from handaxe.frontends.mcp_server.tool_list import (
    MAX_LIST_CHARS,
    build_definitions,
    list_default_tools,
)
from handaxe.text.urls import parse_file_uri
from handaxe.tools import BUILTIN

HANDSHAKE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}},
}


def code_of(answer):
    return answer["error"]["code"]


@pytest.mark.proves("AR-2")
@pytest.mark.parametrize("revision", HANDSHAKE_REVISIONS)
async def test_a_client_of_any_revision_lists_and_calls_tools(connect, project, revision):
    (project / "a.py").write_text("x = 1\n")
    client = connect()
    opened = await client.open(revision)
    assert opened["protocolVersion"] == revision
    assert opened["serverInfo"]["name"] == "handaxe"
    assert (await client.ask("ping"))["result"] == {}
    listed = (await client.ask("tools/list"))["result"]["tools"]
    assert {"Read", "Write", "count_up"} <= {tool["name"] for tool in listed}
    result = await client.call("Read", file_path="a.py")
    assert result["content"] == [{"type": "text", "text": "     1→x = 1"}]
    assert result["isError"] is False
    assert result["structuredContent"]["file"]["content"] == "x = 1"


async def test_an_unknown_revision_is_answered_with_the_newest_that_shakes_hands(connect):
    assert (await connect().open("1999-01-01"))["protocolVersion"] == HANDSHAKE_REVISIONS[-1]


async def test_a_client_without_handshake_discovers_lists_and_calls(connect, project):
    (project / "a.py").write_text("x = 1\n")
    client = connect()
    found = (await client.ask("server/discover", _meta=ENVELOPE))["result"]
    assert found["supportedVersions"] == ["2026-07-28"]
    assert found["resultType"] == "complete"
    listed = (await client.ask("tools/list", _meta=ENVELOPE))["result"]
    assert listed["resultType"] == "complete"
    assert (listed["ttlMs"], listed["cacheScope"]) == (0, "private")
    called = await client.ask(
        "tools/call", _meta=ENVELOPE, name="Read", arguments={"file_path": "a.py"}
    )
    assert called["result"]["resultType"] == "complete"
    assert called["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "handaxe"


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}, -32022),
        ({**ENVELOPE, "io.modelcontextprotocol/protocolVersion": 7}, -32602),
        ({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, -32602),
    ],
)
async def test_a_bad_envelope_is_refused(connect, meta, code):
    answer = await connect().ask("tools/list", _meta=meta)
    assert code_of(answer) == code


async def test_hints_follow_from_effects(connect):
    client = connect()
    await client.open()
    listed = (await client.ask("tools/list"))["result"]["tools"]
    hints = {tool["name"]: tool["annotations"] for tool in listed}
    for name in ("Read", "Glob", "Grep", "count_up"):
        assert hints[name]["readOnlyHint"] is True
        assert hints[name]["openWorldHint"] is False
    for name in ("Edit", "Write"):
        assert hints[name]["readOnlyHint"] is False
        assert hints[name]["destructiveHint"] is True
        assert hints[name]["openWorldHint"] is False
    assert hints["count_up"]["title"] == "count up"


async def test_a_failed_call_is_a_result_with_its_code(connect):
    client = connect()
    await client.open()
    result = await client.call("Read", file_path="missing.py")
    assert result["isError"] is True
    assert result["structuredContent"]["code"] == "file.not_found"
    assert result["_meta"]["handaxe/code"] == "file.not_found"
    wrong = await client.call("Read", nonsense=1)
    assert wrong["structuredContent"]["code"] == "call.bad_input"


async def test_data_says_all_that_the_text_says(connect, project):
    """Many clients show their model the data and nothing else."""
    (project / "a.py").write_text("x = 1\ny = 2\n")
    client = connect()
    await client.open()
    for arguments in ({"file_path": "a.py", "limit": 1}, {"file_path": "missing.py"}):
        result = await client.call("Read", **arguments)
        (block,) = result["content"]
        assert result["structuredContent"]["text"] == block["text"]
    assert "structuredContent" not in await client.call("count_up", to=1)


async def test_the_end_of_background_work_is_told_with_the_next_answer_once(connect, project):
    client = connect(tools=["Bash", "Glob"], permission_mode="bypassPermissions")
    await client.open()
    begun = await client.call("Bash", command="echo over > over", run_in_background=True)
    job = begun["structuredContent"]["backgroundTaskId"]
    told = []
    while not told:
        answer = await client.call("Glob", pattern="*")
        told = [block["text"] for block in answer["content"] if job in block.get("text", "")]
    assert "completed (exit code 0)" in told[0]
    assert told[0] in answer["structuredContent"]["text"]
    assert job not in str(await client.call("Glob", pattern="*"))


async def test_a_long_text_is_sent_once(connect, project):
    (project / "long.py").write_text("a line of some length\n" * 1000)
    client = connect()
    await client.open()
    result = await client.call("Read", file_path="long.py")
    (block,) = result["content"]
    assert block["text"].count("a line of some length") == 1000
    assert "structuredContent" not in result


@pytest.mark.proves("TC-17")
@pytest.mark.parametrize("asked", [False, True])
async def test_output_schemas_of_built_in_tools_are_given_where_they_are_asked_for(
    connect, project, asked
):
    import jsonschema

    (project / "a.txt").write_text("a line of some length\n" * 1000)
    client = connect(tools=list_default_tools(BUILTIN), output_schemas=asked)
    await client.open()
    listed = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
    assert all(("outputSchema" in tool) is asked for tool in listed.values())
    for name, arguments in {
        "Read": {"file_path": "a.txt"},
        "Glob": {"pattern": "*"},
        "Grep": {"pattern": "line", "output_mode": "content"},
    }.items():
        result = await client.call(name, **arguments)
        if asked:
            data, schema = result["structuredContent"], listed[name]["outputSchema"]
            jsonschema.Draft202012Validator(schema).validate(data)
            assert "text" not in data
    failed = await client.call("Read", file_path="none.txt")
    assert failed["isError"]
    assert failed["structuredContent"]["code"] == "file.not_found"


async def test_a_tool_that_promises_data_gives_it_as_it_is(connect):
    class Sum(msgspec.Struct):
        total: int

    @tool(effects=Effects.pure())
    async def add(numbers: list[int]) -> Sum:
        """Adds."""
        return Sum(sum(numbers))

    client = connect(tools=["Read", add])
    await client.open()
    listed = {tool["name"]: tool for tool in (await client.ask("tools/list"))["result"]["tools"]}
    assert listed["add"]["outputSchema"]["properties"]["total"] == {"type": "integer"}
    result = await client.call("add", numbers=[1, 2])
    assert result["structuredContent"] == {"total": 3}


async def test_an_unknown_tool_is_an_error_of_the_protocol(connect):
    client = connect()
    await client.open()
    answer = await client.ask("tools/call", name="Reed", arguments={})
    assert code_of(answer) == -32602
    assert "'Read'" in answer["error"]["message"]


async def test_a_picture_is_an_image_block_and_stands_there_once(connect, project):
    png = (
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\1\0\0\0\1\x08\x06\0\0\0\x1f\x15\xc4\x89"
        b"\0\0\0\rIDATx\xdac\xfc\xcf\xc0P\x0f\0\x04\x85\x01\x80\x84\xa9\x8c!\0\0\0\0IEND\xaeB`\x82"
    )
    (project / "dot.png").write_bytes(png)
    client = connect()
    await client.open()
    result = await client.call("Read", file_path="dot.png")
    (picture,) = [block for block in result["content"] if block["type"] == "image"]
    assert picture["mimeType"] == "image/png"
    # Clients that show data in place of content would lose the picture.
    assert "structuredContent" not in result


async def test_progress_comes_before_the_result(connect):
    client = connect()
    await client.open()
    params = {"name": "count_up", "arguments": {"to": 3}, "_meta": {"progressToken": "p"}}
    await client.ask("tools/call", **params)
    told = [m["params"] for m in client.told if m["method"] == "notifications/progress"]
    assert [(t["progressToken"], t["progress"], t["message"]) for t in told] == [
        ("p", 1, "1 of 3"),
        ("p", 2, "2 of 3"),
        ("p", 3, "3 of 3"),
    ]


async def test_no_progress_is_told_to_who_has_not_asked_for_it(connect):
    client = connect()
    await client.open()
    await client.call("count_up", to=3)
    assert client.told == []


@pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["handshake", "envelope"])
async def test_cancelling_stops_the_tool_and_nothing_answers(connect, meta):
    client = connect()
    if not meta:
        await client.open()
    params = {"name": "wait_long", "arguments": {}, "_meta": {**meta, "progressToken": 1}}
    number, answer = client.start("tools/call", **params)
    await client.until(lambda: bool(client.told))
    client.notify("notifications/cancelled", requestId=number, reason="changed my mind")
    after = await client.ask("tools/list", _meta=meta)
    assert "result" in after
    assert stopped == ["wait_long"]
    assert not answer.done()


async def test_cancelling_what_does_not_run_is_ignored(connect):
    client = connect()
    await client.open()
    for wrong in (99, "no", None, [1], {"a": 1}, True, 1.5):
        client.notify("notifications/cancelled", requestId=wrong)
    client.send({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    assert (await client.ask("ping"))["result"] == {}
    assert client.strays == []


async def test_a_hundred_calls_at_once_are_all_answered(connect, project):
    for number in range(100):
        (project / f"{number}.txt").write_text(f"{number}\n")
    client = connect()
    await client.open()
    calls = [client.call("Read", file_path=f"{number}.txt") for number in range(100)]
    results = await asyncio.gather(*calls)
    assert [r["structuredContent"]["file"]["content"] for r in results] == [
        str(number) for number in range(100)
    ]


async def test_answers_come_as_they_finish(connect, project):
    (project / "a.txt").write_text("a\n")
    client = connect()
    await client.open()
    _, slow = client.start("tools/call", name="wait_long", arguments={})
    assert (await client.call("Read", file_path="a.txt"))["isError"] is False
    assert not slow.done()


async def test_a_batch_is_answered_as_one_where_the_revision_has_batches(connect):
    client = connect()
    await client.open("2025-03-26")
    client.send(
        [
            {"jsonrpc": "2.0", "id": "a", "method": "ping"},
            {"jsonrpc": "2.0", "method": "notifications/whatever"},
            {
                "jsonrpc": "2.0",
                "id": "b",
                "method": "tools/call",
                "params": {"name": "count_up", "arguments": {"to": 1}},
            },
            7,
        ]
    )
    await client.until(lambda: bool(client.strays))
    (batch,) = client.strays
    assert {answer["id"] for answer in batch} == {"a", "b", None}


@pytest.mark.parametrize("batch", [[], [{"jsonrpc": "2.0", "id": "a", "method": "ping"}]])
async def test_a_batch_is_refused_where_the_revision_has_none(connect, batch):
    client = connect()
    await client.open("2025-06-18")
    client.send(batch)
    await client.until(lambda: bool(client.strays))
    assert [code_of(stray) for stray in client.strays] == [-32600]


@pytest.mark.parametrize(
    ("raw", "code", "number"),
    [
        (b"{", -32700, None),
        (b"nonsense\n", -32700, None),
        (b"\xff\xfe\n", -32700, None),
        (b"[" * 20_000, -32700, None),
        (b"7", -32600, None),
        (b'"text"', -32600, None),
        (b"{}", -32600, None),
        (b'{"jsonrpc": "2.0", "id": 5}', -32600, 5),
        (b'{"jsonrpc": "1.0", "id": 5, "method": "ping"}', -32600, 5),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 99999999999999999999999, "method": "ping"}', -32600, None),
        (b'{"jsonrpc": "2.0", "id": 6, "method": 7}', -32600, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "ping", "params": [1]}', -32602, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "nope"}', -32601, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "resources/subscribe"}', -32601, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "initialize"}', -32602, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "tools/list", "params": {"cursor": "x"}}', -32602, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {}}', -32602, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "tools/call", "params": {"name": 1}}', -32602, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "logging/setLevel", "params": {"level": []}}', -32602, 6),
        (b'{"jsonrpc": "2.0", "id": 6, "method": "logging/setLevel", "params": {"level": "loud"}}', -32602, 6),
    ],
)  # fmt: skip
async def test_a_wrong_message_gets_the_right_error_and_the_next_one_works(
    connect, raw, code, number
):
    client = connect()
    await client.open()
    client.send(raw.rstrip(b"\n") + b"\n")
    await client.until(lambda: bool(client.strays))
    (stray,) = client.strays
    assert (code_of(stray), stray["id"]) == (code, number)
    assert (await client.ask("ping"))["result"] == {}


async def test_nothing_but_ping_is_answered_before_the_handshake(connect):
    client = connect()
    client.notify("notifications/initialized")
    client.notify("notifications/roots/list_changed")
    assert code_of(await client.ask("tools/list")) == -32600
    assert code_of(await client.ask("nope")) == -32601
    assert (await client.ask("ping"))["result"] == {}
    await client.open()


async def test_a_second_handshake_is_accepted_and_the_last_one_counts(connect):
    client = connect()
    await client.open()
    number, answer = client.start("tools/call", name="wait_long", arguments={})
    assert (await client.open("2025-03-26"))["protocolVersion"] == "2025-03-26"
    client.send([{"jsonrpc": "2.0", "id": "b", "method": "ping"}])
    await client.until(lambda: client.strays == [[{"jsonrpc": "2.0", "id": "b", "result": {}}]])
    assert (await client.open())["protocolVersion"] == "2025-11-25"
    client.strays.clear()
    client.send([{"jsonrpc": "2.0", "id": "b", "method": "ping"}])
    await client.until(lambda: bool(client.strays))
    assert code_of(client.strays[0]) == -32600
    assert not answer.done()
    client.notify("notifications/cancelled", requestId=number)
    assert (await client.ask("tools/list"))["result"]["tools"]


async def test_an_id_that_is_still_running_cannot_be_used_again(connect):
    client = connect()
    await client.open()
    number, answer = client.start("tools/call", name="wait_long", arguments={})
    client.send({"jsonrpc": "2.0", "id": number, "method": "ping"})
    assert code_of(await asyncio.wait_for(answer, HANG_S)) == -32600


async def test_lone_surrogates_in_a_call_are_told_and_not_a_crash(connect):
    client = connect()
    await client.open()
    client.send(
        b'{"jsonrpc": "2.0", "id": "s", "method": "tools/call", "params":'
        b' {"name": "Read", "arguments": {"file_path": "\\ud800"}}}\n'
    )
    await client.until(lambda: bool(client.strays))
    assert client.strays[0]["result"]["isError"] is True


async def test_lines_may_come_in_pieces(connect):
    client = connect()
    raw = json.dumps(HANDSHAKE).encode() + b"\n"
    for piece in (raw[:10], raw[10:60], raw[60:]):
        client.send(piece)
        await asyncio.sleep(0.01)
    await client.until(lambda: bool(client.strays))
    assert client.strays[0]["id"] == 0


def test_a_line_that_is_too_long_is_skipped_and_told():
    splitter = LineSplitter(max_bytes=10)
    assert list(splitter.feed(b"short\n0123456789")) == [b"short"]
    assert list(splitter.feed(b"x" * 100)) == []
    assert list(splitter.feed(b"end\nok\n")) == [None, b"ok"]
    assert splitter.end() == b""
    assert MAX_LINE_BYTES >= 16 << 20


async def test_random_json_never_ends_the_server(connect):
    client = connect()
    await client.open()
    chance = random.Random(7)
    words = ["jsonrpc", "2.0", "id", "method", "params", "tools/call", "name", "arguments", "_meta",
             "Read", "initialize", "notifications/cancelled", "requestId", "result", "error"]  # fmt: skip

    def value(depth):
        kind = chance.randrange(8 if depth else 5)
        if kind == 0:
            return chance.choice(words)
        if kind == 1:
            return chance.choice([0, 1, -1, 2**53, 1e300, None, True])
        if kind < 5:
            return (
                {chance.choice(words): value(depth - 1) for _ in range(chance.randrange(5))}
                if depth
                else ""
            )
        return [value(depth - 1) for _ in range(chance.randrange(4))]

    for _ in range(300):
        message = value(3)
        if isinstance(message, dict) and chance.random() < 0.7:
            message |= {
                "jsonrpc": "2.0",
                "id": chance.choice(["x", 1000, None]),
                "method": chance.choice(words),
            }
        line = json.dumps(message).encode()
        if chance.random() < 0.2:
            line = line[: chance.randrange(len(line) + 1)]
        client.send(line + b"\n")
        await asyncio.sleep(0)
    assert (await client.ask("ping"))["result"] == {}
    assert not client.server.done()


class TestQuestions:
    """What a client's user is asked, in revisions with and without requests of the server."""

    async def test_nobody_to_ask_names_the_rule_that_would_allow(self, connect, project):
        client = connect()
        await client.open()
        result = await client.call("Write", file_path="new.txt", content="x")
        assert result["structuredContent"]["code"] == "permission.asked"
        assert "Edit(/new.txt)" in result["content"][0]["text"]
        assert not (project / "new.txt").exists()

    async def test_a_form_is_shown_and_its_yes_counts_once(self, connect, project):
        client = connect()
        await client.open(**FORMS)
        client.answers["elicitation/create"] = lambda _: {
            "action": "accept",
            "content": {"answer": "once"},
        }
        assert (await client.call("Write", file_path="a", content="x"))["isError"] is False
        assert (project / "a").read_text() == "x"
        form = client.told[0]["params"]
        assert form["mode"] == "form"
        assert form["requestedSchema"]["properties"]["answer"]["enum"][0] == "once"
        assert "Edit(/a)" in form["message"]
        await client.call("Write", file_path="b", content="x")
        asked = [m for m in client.told if m["method"] == "elicitation/create"]
        assert len(asked) == 2

    async def test_a_lasting_yes_is_not_asked_again(self, connect, project):
        client = connect()
        await client.open(elicitation={})
        client.answers["elicitation/create"] = lambda _: {
            "action": "accept",
            "content": {"answer": "session"},
        }
        for text in ("one", "two"):
            await client.call("Write", file_path="a", content=text)
            await client.call("Read", file_path="a")
        assert (project / "a").read_text() == "two"
        assert len([m for m in client.told if m["method"] == "elicitation/create"]) == 1

    @pytest.mark.parametrize(
        ("answer", "said"),
        [
            ({"action": "accept", "content": {"answer": "no", "comment": "not now"}}, "not now"),
            ({"action": "decline"}, "denied it"),
            ({"action": "cancel"}, "closed the question"),
            ({"action": "accept"}, "denied it"),
            ({"action": "accept", "content": {"answer": "yes!!"}}, "denied it"),
            (None, "denied it"),
            ([], "denied it"),
        ],
    )
    async def test_whatever_is_not_a_yes_is_a_no(self, connect, project, answer, said):
        client = connect()
        await client.open(**FORMS)
        client.answers["elicitation/create"] = lambda _: answer
        result = await client.call("Write", file_path="a", content="x")
        assert result["structuredContent"]["code"] == "permission.denied"
        assert said in result["content"][0]["text"]
        assert not (project / "a").exists()

    async def test_a_client_that_shows_only_addresses_is_not_asked(self, connect):
        client = connect()
        await client.open(elicitation={"url": {}})
        result = await client.call("Write", file_path="a", content="x")
        assert result["structuredContent"]["code"] == "permission.asked"

    async def test_cancelling_a_call_takes_its_question_back(self, connect):
        client = connect()
        await client.open(**FORMS)
        arguments = {"file_path": "a", "content": "x"}
        number, _ = client.start("tools/call", name="Write", arguments=arguments)
        await client.until(lambda: bool(client.told))
        client.notify("notifications/cancelled", requestId=number)
        await client.until(lambda: client.told[-1]["method"] == "notifications/cancelled")
        assert client.told[-1]["params"]["requestId"] == client.told[0]["id"]

    async def test_without_handshake_the_call_pauses_and_goes_on(self, connect, project):
        client = connect()
        meta = {**ENVELOPE, "io.modelcontextprotocol/clientCapabilities": FORMS}
        call = {"name": "Write", "arguments": {"file_path": "a", "content": "x"}, "_meta": meta}
        paused = (await client.ask("tools/call", **call))["result"]
        assert paused["resultType"] == "input_required"
        assert paused["inputRequests"]["permission"]["method"] == "elicitation/create"
        assert not (project / "a").exists()
        again = {
            **call,
            "requestState": paused["requestState"],
            "inputResponses": {"permission": {"action": "accept", "content": {"answer": "once"}}},
        }
        other = {**again, "arguments": {"file_path": "b", "content": "x"}}
        assert code_of(await client.ask("tools/call", **other)) == -32602
        state = paused["requestState"]
        for forged in (
            "x",
            7,
            "é",
            state + "x",
            state + "=",
            state[:-8],
            "A" + state[1:],
            state[4:],
        ):
            wrong = {**again, "requestState": forged}
            assert code_of(await client.ask("tools/call", **wrong)) == -32602
        asked = (await client.ask("tools/call", **{**again, "inputResponses": {}}))["result"]
        assert asked["resultType"] == "input_required"
        again["requestState"] = asked["requestState"]
        done = (await client.ask("tools/call", **again))["result"]
        assert (done["resultType"], done["isError"]) == ("complete", False)
        assert (project / "a").read_text() == "x"


class TestRoots:
    """The session works where the client works."""

    async def test_the_first_root_is_the_project_and_the_others_are_open_too(
        self, connect, tmp_path
    ):
        first, second = tmp_path / "with space", tmp_path / "second"
        for directory in (first, second):
            directory.mkdir()
            (directory / "a.txt").write_text(directory.name + "\n")
        client = connect(root=None)
        uris = [first.as_uri(), second.as_uri(), (tmp_path / "gone").as_uri(), "https://x.org/"]
        client.answers["roots/list"] = lambda _: {"roots": [{"uri": uri} for uri in uris]}
        await client.open(roots={"listChanged": True})
        result = await client.call("Read", file_path="a.txt")
        assert result["structuredContent"]["file"]["content"] == "with space"
        assert (await client.call("Read", file_path=f"{second}/a.txt"))["isError"] is False

    async def test_directories_follow_and_what_was_read_stays_known(
        self, connect, project, tmp_path
    ):
        (project / "a.txt").write_text("x\n")
        more = tmp_path / "more"
        more.mkdir()
        (more / "b.txt").write_text("b\n")
        roots = [project.as_uri()]
        client = connect(root=None, permission_mode="acceptEdits")
        client.answers["roots/list"] = lambda _: {"roots": [{"uri": uri} for uri in roots]}
        await client.open(roots={})
        await client.call("Read", file_path="a.txt")
        outside = await client.call("Read", file_path=str(more / "b.txt"))
        assert outside["structuredContent"]["code"] == "permission.asked"
        roots.append(more.as_uri())
        client.notify("notifications/roots/list_changed")
        assert (await client.call("Read", file_path=str(more / "b.txt")))["isError"] is False
        edit = await client.call("Edit", file_path="a.txt", old_string="x", new_string="y")
        assert edit["isError"] is False
        roots.pop()
        client.notify("notifications/roots/list_changed")
        gone = await client.call("Read", file_path=str(more / "b.txt"))
        assert gone["structuredContent"]["code"] == "permission.asked"

    async def test_another_first_root_is_another_project(self, connect, tmp_path):
        places = [tmp_path / "one", tmp_path / "two"]
        for place in places:
            place.mkdir()
            (place / "a.txt").write_text(place.name + "\n")
        client = connect(root=None)
        client.answers["roots/list"] = lambda _: {"roots": [{"uri": places[0].as_uri()}]}
        await client.open(roots={})
        first = await client.call("Read", file_path="a.txt")
        places.reverse()
        client.notify("notifications/roots/list_changed")
        second = await client.call("Read", file_path="a.txt")
        read = [r["structuredContent"]["file"]["content"] for r in (first, second)]
        assert read == ["one", "two"]

    async def test_a_named_root_stays_and_the_clients_are_added(self, connect, project, tmp_path):
        more = tmp_path / "more"
        more.mkdir()
        (more / "b.txt").write_text("b\n")
        (project / "a.txt").write_text("a\n")
        client = connect(root=project)
        client.answers["roots/list"] = lambda _: {"roots": [{"uri": more.as_uri()}]}
        await client.open(roots={})
        assert (await client.call("Read", file_path="a.txt"))["isError"] is False
        assert (await client.call("Read", file_path=str(more / "b.txt")))["isError"] is False

    async def test_a_client_that_cannot_say_where_it_works_is_served_all_the_same(
        self, connect, project
    ):
        (project / "a.txt").write_text("a\n")
        client = connect()
        client.answers["roots/list"] = lambda _: "nonsense"
        await client.open(roots={})
        assert (await client.call("Read", file_path="a.txt"))["isError"] is False


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("file:///a/b", "/a/b"),
        ("file:///a/b/", "/a/b/"),
        ("file://localhost/a", "/a"),
        ("file:/a/b", "/a/b"),
        ("FILE:///a", "/a"),
        ("file:///with%20space", "/with space"),
        ("file:///with space", "/with space"),
        ("file:///%C3%A9", "/é"),
        ("file:///é", "/é"),
        ("file:///%23%3F%25", "/#?%"),
        ("file:///a?b#c", "/a"),
        ("file:///a%2Fb", "/a/b"),
        ("file:///%FF", "/\udcff"),
        ("file:///%zz", "/%zz"),
        ("file:///C:/Users/me", "/C:/Users/me"),
        ("file:///..%2f..%2fetc", "/../../etc"),
        ("file:///%00", None),
        ("file://host/a", None),
        ("file:a/b", None),
        ("https://example.org/a", None),
        ("/a/b", None),
        ("", None),
        ("\ud800", None),
    ],
)
def test_an_address_of_a_root_is_read_as_a_path(uri, path):
    assert parse_file_uri(uri) == path


@pytest.mark.parametrize(
    "answer", [None, 7, {}, {"roots": None}, {"roots": [None, 7, {}, {"uri": 7}, {"uri": "x:"}]}]
)
def test_an_answer_that_names_no_directory_names_none(answer):
    assert parse_roots(answer) == []


class TestChanges:
    """Tools that come and go."""

    @pytest.mark.parametrize("meta", [{}, ENVELOPE], ids=["handshake", "envelope"])
    async def test_a_denied_tool_goes_and_the_client_hears_of_it(self, connect, project, meta):
        client = connect()
        if meta:
            client.start(
                "subscriptions/listen", _meta=meta, notifications={"toolsListChanged": True}
            )
            await client.until(lambda: bool(client.told))
            assert client.told[0]["method"] == "notifications/subscriptions/acknowledged"
            assert client.told[0]["params"]["notifications"] == {"toolsListChanged": True}
        else:
            await client.open()
        before = (await client.ask("tools/list", _meta=meta))["result"]["tools"]
        (project / ".handaxe").mkdir()
        (project / ".handaxe" / "settings.json").write_text('{"permissions": {"deny": ["Glob"]}}')
        changed = "notifications/tools/list_changed"
        await client.until(lambda: any(m["method"] == changed for m in client.told))
        after = (await client.ask("tools/list", _meta=meta))["result"]["tools"]
        assert {t["name"] for t in before} - {t["name"] for t in after} == {"Glob"}

    async def test_the_list_is_the_same_bytes_every_time(self, connect):
        client = connect()
        await client.open()
        lists = [json.dumps((await client.ask("tools/list"))["result"]) for _ in range(3)]
        assert len(set(lists)) == 1


def command(*words):
    return [sys.executable, "-m", "handaxe", "mcp", *words]


def spoken(*messages):
    return b"".join(json.dumps(message).encode() + b"\n" for message in messages)


def test_a_pipe_of_messages_is_answered_and_ends_with_the_input(project):
    (project / "a.py").write_text("x = 1\n")
    call = {"name": "Read", "arguments": {"file_path": "a.py"}}
    said = spoken(
        HANDSHAKE,
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call},
    ).rstrip(b"\n")
    out = subprocess.run(
        command(), input=said, capture_output=True, cwd=project, timeout=60, check=False
    )
    assert (out.returncode, out.stderr) == (0, b"")
    answers = [json.loads(line) for line in out.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == [0, 1]


def test_messages_may_come_from_a_plain_file_and_go_to_one(project):
    said = project / "said.jsonl"
    said.write_bytes(spoken(HANDSHAKE))
    heard = project / "heard.jsonl"
    with said.open("rb") as source, heard.open("wb") as sink:
        out = subprocess.run(
            command(), stdin=source, stdout=sink, cwd=project, timeout=60, check=False
        )
    assert out.returncode == 0
    assert json.loads(heard.read_text())["id"] == 0


def test_no_input_at_all_is_a_quiet_end(project):
    out = subprocess.run(
        command(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=project,
        timeout=60,
        check=False,
    )
    assert (out.returncode, out.stdout, out.stderr) == (0, b"", b"")


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
)
def test_a_signal_ends_the_server(project, number, code):
    with subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project
    ) as server:
        pipe, output = require(server.stdin), require(server.stdout)
        pipe.write(spoken(HANDSHAKE))
        pipe.flush()
        assert json.loads(output.readline())["id"] == 0
        server.send_signal(number)
        assert server.wait(HANG_S) == code


@pytest.mark.parametrize(
    "words", [["--tools", "Reed"], ["--root", "no-such-place"], ["--http", "99999999"], ["install"]]
)
def test_wrong_usage_is_told_on_stderr_and_ends_with_two(project, words):
    out = subprocess.run(
        command(*words), input=b"", capture_output=True, cwd=project, timeout=60, check=False
    )
    assert (out.returncode, out.stdout) == (2, b"")
    assert out.stderr.startswith(b"handaxe: ") or b"usage" in out.stderr


def test_the_default_tool_list_stays_small(project):
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    out = subprocess.run(
        command(),
        input=spoken(HANDSHAKE, listing),
        capture_output=True,
        cwd=project,
        timeout=60,
        check=False,
    )
    tools = json.loads(out.stdout.splitlines()[1])["result"]["tools"]
    assert len(json.dumps(tools, ensure_ascii=False)) <= MAX_LIST_CHARS
    assert {tool["name"] for tool in tools} == set(list_default_tools(BUILTIN))
    assert {"Edit", "Glob", "Grep", "Read", "Undo", "Write"} <= {tool["name"] for tool in tools}


def test_every_listed_schema_is_a_schema(project):
    import jsonschema

    for definition in definitions_in(project):
        jsonschema.Draft202012Validator.check_schema(definition["inputSchema"])
        assert definition["inputSchema"]["type"] == "object"


def definitions_in(project):
    session = Session(project)
    return build_definitions(get_parts(session).catalog.list_offered())


def test_the_read_only_preset_offers_nothing_that_changes(project):
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    out = subprocess.run(
        command("--tools", "read-only"),
        input=spoken(HANDSHAKE, listing),
        capture_output=True,
        cwd=project,
        timeout=60,
        check=False,
    )
    tools = json.loads(out.stdout.splitlines()[1])["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["Glob", "Grep", "Read"]
    assert all(tool["annotations"]["readOnlyHint"] for tool in tools)


PRINTING = """
import asyncio, os
from handaxe.frontends.mcp_server.stdio_transport import take_stdio
from handaxe.frontends.mcp_server.handlers import serve
from tests.frontends.mcp_server.raw_client import blueprint_of
source, sink = take_stdio()
assert not os.get_inheritable(source) and not os.get_inheritable(sink)
assert os.read(0, 1) == b""
print("a stray print")
asyncio.run(serve(blueprint_of("."), source, sink))
"""


def test_nothing_but_the_protocol_reaches_stdout_and_children_cannot_reach_the_pipes(project):
    call = {"name": "print_loudly", "arguments": {"text": "hello"}}
    said = spoken(HANDSHAKE, {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call})
    path = os.pathsep.join([os.getcwd(), *sys.path])
    out = subprocess.run(
        [sys.executable, "-c", PRINTING],
        input=said,
        capture_output=True,
        cwd=project,
        env={**os.environ, "PYTHONPATH": path},
        timeout=60,
        check=False,
    )
    assert [json.loads(line)["id"] for line in out.stdout.splitlines()] == [0, 1]
    for printed in (b"a stray print", b"hello\n", b"hello from a child"):
        assert printed in out.stderr


async def test_the_server_ends_soon_after_its_input_although_a_tool_still_runs(connect):
    client = connect()
    await client.open()
    client.start("tools/call", name="wait_long", arguments={})
    await client.ask("ping")
    await client.close()
    assert stopped == ["wait_long"]


def test_a_client_that_does_not_read_gets_everything_when_it_does(project):
    (project / "big.txt").write_text("a line of ordinary length, more or less\n" * 2000)
    call = {"name": "Read", "arguments": {"file_path": "big.txt"}}
    with subprocess.Popen(
        command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=project
    ) as server:
        pipe, output = require(server.stdin), require(server.stdout)
        pipe.write(spoken(HANDSHAKE))
        for number in range(1, 151):
            message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": call}
            pipe.write(spoken(message))
        pipe.flush()
        time.sleep(1)
        answers = [json.loads(output.readline()) for _ in range(151)]
        pipe.close()
        assert server.wait(HANG_S) == 0
    assert {answer["id"] for answer in answers} == set(range(151))
    assert not any(answer["result"].get("isError") for answer in answers)


@pytest.mark.parametrize("edit_format", ["replace", "multi", "patch", "lines"])
async def test_the_list_stays_small_in_every_edit_format(project, edit_format):
    settings = {"edit": {"format": edit_format}}
    async with Session(project, tools=list_default_tools(BUILTIN), settings=settings) as session:
        listed = build_definitions(get_parts(session).catalog.list_offered())
    assert len(json.dumps(listed, ensure_ascii=False)) <= MAX_LIST_CHARS
    assert len(listed) == 11
