"""Other people's servers, well behaved and not, as a session meets them."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from handaxe.app.session import Session, get_parts
from handaxe.app.slash_commands import expand_prompt
from handaxe.app.tool_listing import get_data_schema
from handaxe.contract.events import CallProgress, McpServerChanged
from handaxe.contract.faults import SetupError
from handaxe.mcp import server as server_module

THIN = str(Path(__file__).with_name("thin_server.py"))


def thin(*trouble: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [THIN, *trouble], **more}


def bearers(mark: str) -> list[int]:
    """Living processes that carry the mark of a test in their environment."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) != os.getpid():
            try:
                environment = Path(f"/proc/{name}/environ").read_bytes()
            except OSError:
                continue
            if f"TEST_MARK={mark}".encode() in environment:
                found.append(int(name))
    return found


class Bench:
    """Sessions with servers, and the mark that all their processes carry."""

    def __init__(self, root: Path, home: Path) -> None:
        self.root, self.home, self.mark = root, home, os.urandom(8).hex()
        self.events: list[Any] = []

    def session(self, servers: dict[str, Any], **more: Any) -> Session:
        marked = {
            name: {**one, "env": {"TEST_MARK": self.mark, **one.get("env", {})}}
            if "command" in one
            else one
            for name, one in servers.items()
        }
        options = {"allow": ["mcp__a", "mcp__b"], **more}
        session = Session(
            self.root, home=self.home, setting_sources=[], mcp_servers=marked, **options
        )
        session.subscribe(self.events.append)
        return session


@pytest.fixture
async def bench(tmp_path) -> AsyncIterator[Bench]:
    (tmp_path / "project").mkdir()
    made = Bench(tmp_path / "project", tmp_path / "home")
    yield made
    assert bearers(made.mark) == []


@pytest.mark.proves("AR-2")
async def test_a_remote_tool_is_called_like_any_other(bench):
    async with bench.session({"a": thin()}) as session:
        result = await session.call("mcp__a__echo", text="hi ", times="2")
        assert (result.ok, result.text) == (True, "hi hi ")
        assert result.notes == ("times: read integer sent as text",)
        assert "mcp__a__echo" in [tool["name"] for tool in session.tools("anthropic")]
        connected = [event for event in bench.events if isinstance(event, McpServerChanged)]
        assert [(event.status, event.tools) for event in connected] == [("connected", 25)]


async def test_opening_a_session_waits_for_no_server(bench):
    (bench.root / "x.txt").write_text("here")
    # One of them never answers: whoever waits for it waits until it has failed.
    async with bench.session({"a": thin("stubborn"), "b": thin()}) as session:
        assert session.mcp.status()[0].status == "pending"
        assert (await session.call("Read", file_path="x.txt")).ok
        assert session.mcp.status()[0].status == "pending"


async def test_a_server_that_nobody_waits_for_is_not_started(bench):
    (bench.root / "x.txt").write_text("here")
    async with bench.session({"a": thin()}) as session:
        assert (await session.call("Read", file_path="x.txt")).ok


async def test_every_wrong_value_is_told_at_once(bench):
    async with bench.session({"a": thin()}) as session:
        result = await session.call("mcp__a__echo", times="many", text=5)
        assert result.code == "call.bad_input"
        assert "`times`" in result.text
        assert "`text`" in result.text
        assert (await session.call("mcp__a__echo")).text.endswith(
            "The required parameter `text` is missing"
        )


async def test_alternatives_at_the_root_become_one_object_with_a_sentence(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        definition = next(t for t in session.tools() if t["name"] == "mcp__a__either")
        schema = (
            definition.get("input_schema")
            or definition.get("inputSchema")
            or definition["parameters"]
        )
        assert sorted(schema["properties"]) == ["a", "b"]
        assert "anyOf" not in schema
        assert (
            "Give at least one of these sets of parameters: `a`; or `b`."
            in definition["description"]
        )
        assert (await session.call("mcp__a__either", b=1)).ok
        assert (await session.call("mcp__a__either")).code == "call.bad_input"


@pytest.mark.parametrize(
    ("tool", "read_only", "destructive"),
    [("look", True, False), ("add", False, False), ("echo", False, True)],
)
async def test_what_a_server_says_of_its_tools_is_what_is_assumed_and_silence_is_the_worst(
    bench, tool, read_only, destructive
):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        effects = get_parts(session).catalog.find(f"mcp__a__{tool}")[0].effects
        assert (effects.is_read_only, effects.is_destructive) == (read_only, destructive)


async def test_a_remote_tool_asks_even_if_its_server_calls_it_harmless(bench):
    async with bench.session({"a": thin()}, allow=[]) as session:
        assert (await session.call("mcp__a__look")).code == "permission.asked"


async def test_a_tool_that_wants_a_person_asks_in_spite_of_a_rule(bench):
    async with bench.session({"a": thin()}) as session:
        result = await session.call("mcp__a__ask_me")
        assert result.code == "permission.asked"
        assert "requires the user" in result.text


async def test_a_deny_rule_for_a_server_hides_its_tools(bench):
    async with bench.session({"a": thin(), "b": thin()}, deny=["mcp__a"]) as session:
        await session.mcp.settled()
        names = [tool["name"] for tool in session.tools()]
        assert not any(name.startswith("mcp__a") for name in names)
        assert "mcp__b__echo" in names
        assert (await session.call("mcp__a__echo", text="x")).code == "permission.denied"


@pytest.mark.proves("RG-3")
async def test_servers_come_and_go_behind_an_unchanged_prefix(bench):
    async with bench.session({"a": thin(), "b": thin("many")}) as session:
        before = session.tools()
        await session.mcp.settled()
        after = session.tools()
        assert json.dumps(after[: len(before)]) == json.dumps(before)
        names = [tool["name"] for tool in after[len(before) :]]
        assert names == sorted(names)
        assert len(names) == 25 + 300
        get_parts(session).catalog.replace_external("mcp:a", [])
        assert json.dumps(session.tools()[: len(before)]) == json.dumps(before)


async def test_results_carry_text_pictures_files_and_data(bench):
    async with bench.session({"a": thin()}) as session:
        picture = await session.call("mcp__a__picture")
        assert picture.content[0].media_type == "image/png"
        sound = await session.call("mcp__a__sound")
        path = sound.text.rpartition("saved to ")[2].rstrip("]")
        assert Path(path).read_bytes().startswith(b"\x89PNG")
        assert path.endswith(".wav")
        resource = await session.call("mcp__a__resource")
        assert "[Resource of a at a://b]\ninside" in resource.text
        assert ".pdf]" in resource.text
        assert "[Resource linked of a at a://d]" in resource.text
        structured = await session.call("mcp__a__structured")
        assert (structured.text, structured.data) == ('{"answer":42}', {"answer": 42})


@pytest.mark.proves("TC-17")
async def test_an_output_schema_is_kept_as_it_came_and_data_has_to_fit_it(bench):
    async with bench.session({"a": thin()}) as session:
        fits = await session.call("mcp__a__structured", data={"answer": 1, "more": 2})
        tool, _ = get_parts(session).catalog.find("mcp__a__structured")
        assert get_data_schema(tool) == {
            "title": "Kept",
            "type": "object",
            "properties": {"answer": {"type": "integer", "x-own": [1]}},
            "required": ["answer"],
            "$comment": "no key of it is lost",
        }
        assert (fits.ok, fits.data) == (True, {"answer": 1, "more": 2})
        for data, sentence in [
            ({"answer": "x"}, "the field `answer` is string, not integer"),
            ({}, "the field `answer` is missing"),
            (None, "it gave no data"),
        ]:
            broken = await session.call("mcp__a__structured", data=data)
            assert broken.code == "mcp.bad_output"
            assert sentence in broken.text
            # What the server did say is not lost.
            assert broken.text.endswith("\nsaid")


async def test_a_long_result_is_stored_and_a_tool_may_ask_for_more_room(bench):
    async with bench.session({"a": thin()}) as session:
        stored = await session.call("mcp__a__long")
        assert stored.size_chars == 150_000
        assert len(stored.text) < 10_000
        assert len((await session.call("mcp__a__big")).text) == 150_000
        assert get_parts(session).catalog.find("mcp__a__big")[0].always_load


async def test_a_failed_tool_is_a_failed_result_with_its_own_words(bench):
    async with bench.session({"a": thin()}) as session:
        failed = await session.call("mcp__a__fail")
        assert (failed.ok, failed.code, failed.text) == (
            False,
            "mcp.tool_failed",
            "it did not work",
        )
        refused = await session.call("mcp__a__rpc_error")
        assert refused.code == "mcp.refused"
        assert "not like this" in refused.text
        broken = await session.call("mcp__a__broken")
        assert broken.code == "mcp.refused"
        assert (await session.call("mcp__a__echo", text="still here")).ok


async def test_a_server_that_dies_during_a_call_costs_that_call_and_nothing_else(bench):
    async with bench.session({"a": thin(), "b": thin()}) as session:
        await session.mcp.settled()
        results = await session.call_many([("mcp__a__crash", {}), ("mcp__b__echo", {"text": "b"})])
        assert results[0].code == "mcp.connection_lost"
        assert "signal 9 ended it" in results[0].text
        assert "about to fall over" in results[0].text
        assert results[1].text == "b"
        again = await session.call("mcp__a__echo", text="again")
        assert again.text == "again"


async def test_a_server_killed_between_calls_is_started_again_for_the_next(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        (pid,) = bearers(bench.mark)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: session.mcp.status()[0].status != "connected")
        assert (await session.call("mcp__a__echo", text="back")).text == "back"


async def test_a_dead_server_comes_back_by_itself(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        (pid,) = bearers(bench.mark)
        os.kill(pid, signal.SIGKILL)
        await until(lambda: session.mcp.status()[0].status == "pending")
        await until(lambda: session.mcp.status()[0].status == "connected")


async def test_a_call_past_its_deadline_ends_and_the_server_is_told(bench):
    async with bench.session({"a": thin(timeout=1500)}) as session:
        await session.mcp.settled()
        result = await session.call("mcp__a__sleep")
        assert result.code == "mcp.timed_out"
        assert "1.5 s" in result.text
        assert len(json.loads((await session.call("mcp__a__cancelled")).text)) == 1


async def test_a_cancelled_call_returns_unanswered_and_the_server_is_told(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        running = asyncio.ensure_future(session.call("mcp__a__sleep"))
        await until(lambda: any(isinstance(event, CallProgress) for event in bench.events))
        session.cancel()
        assert (await running).code == "call.cancelled"
        assert len(json.loads((await session.call("mcp__a__cancelled")).text)) == 1


async def test_progress_is_told(bench):
    async with bench.session({"a": thin()}) as session:
        assert (await session.call("mcp__a__progress")).text == "done"
        told = [event.text for event in bench.events if isinstance(event, CallProgress)]
        assert told
        assert all(text.endswith("/3 working") for text in told)


async def test_a_huge_answer_is_kept_in_a_file_and_not_in_memory(bench):
    import resource

    async with bench.session({"a": thin()}) as session:
        await session.call("mcp__a__echo", text="warm")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = await session.call("mcp__a__huge", mb=100)
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
        assert result.code == "mcp.too_large"
        assert grown_mb < 120
        path = result.text.partition("of it is in ")[2].partition(";")[0]
        assert Path(path).stat().st_size > 100 << 20
        assert (await session.call("mcp__a__echo", text="fine")).text == "fine"


async def test_noise_on_both_outputs_disturbs_nobody(bench):
    async with bench.session({"a": thin("chatty")}) as session:
        assert (await session.call("mcp__a__echo", text="calm")).text == "calm"
        assert (await session.call("mcp__a__flood")).text == "after the flood"
        log = Path(session.mcp.status()[0].log_path)
        assert "Welcome to my server!" in log.read_text()
        assert sum(file.stat().st_size for file in log.parent.iterdir()) <= 2 << 20


async def test_a_changed_list_is_taken_over_and_a_failed_refresh_keeps_the_old_one(bench):
    async with bench.session({"a": thin()}) as session:
        assert (await session.call("mcp__a__echo", text="x")).ok
        await session.call("mcp__a__change")
        await until(lambda: get_parts(session).catalog.has("mcp__a__brand_new"))
        assert (await session.call("mcp__a__brand_new")).ok
        # What was used under one description is not used unasked under another.
        changed = await session.call("mcp__a__echo", text="x")
        assert changed.code == "permission.asked"
        assert "changed the description of this tool" in changed.text
        await session.call("mcp__a__change")
        await asyncio.sleep(0.2)
        assert get_parts(session).catalog.has("mcp__a__brand_new")


async def test_roots_are_given_and_told_again_when_they_change(bench, tmp_path):
    more = tmp_path / "more dir"
    more.mkdir()
    async with bench.session({"a": thin()}) as session:
        await session.call("mcp__a__echo", text="x")
        assert json.loads((await session.call("mcp__a__roots")).text) == [f"file://{bench.root}"]
        session.workdir.roots = (*session.workdir.roots, str(more))
        get_parts(session).services.follow()

        async def second_root():
            return json.loads((await session.call("mcp__a__roots")).text)[1:]

        assert (await until(second_root))[0].endswith("/more%20dir")


async def test_a_server_gets_a_clean_environment_and_the_project_as_its_directory(
    bench, monkeypatch
):
    monkeypatch.setenv("MY_SECRET_TOKEN", "hush")
    async with bench.session({"a": thin(env={"WANTED": "${MY_SECRET_TOKEN}!"})}) as session:
        seen = json.loads((await session.call("mcp__a__env")).text)
        assert seen["cwd"] == str(bench.root)
        assert seen["env"]["WANTED"] == "hush!"
        assert seen["env"]["CLAUDE_PROJECT_DIR"] == str(bench.root)
        assert "MY_SECRET_TOKEN" not in seen["env"]


async def test_words_of_a_server_are_cleaned_and_cut(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        instructions = session.mcp.status()[0].instructions
        assert instructions.startswith("Be nice.[31mxxx")
        assert len(instructions) == 2048


@pytest.mark.proves("BT-31")
async def test_resources_are_listed_and_read_by_tools(bench):
    async with bench.session({"a": thin()}) as session:
        listed = await session.call("ListMcpResources")
        assert listed.data["resources"][0]["uri"] == "note://one"
        assert listed.text.splitlines() == [
            "a note://one (one) [text/plain]: first",
            "a note://two (two)",
        ]
        assert (
            await session.call("ReadMcpResourceTool", server="a", uri="note://one")
        ).text == "the first note"
        blob = await session.call("ReadMcpResource", server="a", uri="note://two")
        path = blob.to_json()["data"]["contents"][0]["blobSavedTo"]
        assert Path(path).read_bytes().startswith(b"\x89PNG")
        missing = await session.call("ReadMcpResource", server="a", uri="note://three")
        assert missing.code == "mcp.refused"
        unknown = await session.call("ListMcpResources", server="z")
        assert (unknown.code, unknown.text) == (
            "mcp.unknown_server",
            "There is no MCP server named 'z' here. Servers: a.",
        )


async def test_prompts_are_listed_and_filled_in(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        (prompt,) = await session.mcp.prompts()
        assert (prompt.name, prompt.required) == ("mcp__a__greet", ("who",))
        assert await session.mcp.prompt("mcp__a__greet", {"who": "Ada"}) == "Greet Ada."


async def test_a_prompt_of_a_server_is_typed_like_a_command(bench):
    async with bench.session({"a": thin()}) as session:
        assert await expand_prompt(session, "/mcp__a__greet Ada Lovelace") == "Greet Ada Lovelace."
        with pytest.raises(SetupError, match="needs: who"):
            await expand_prompt(session, "/mcp__a__greet")
        with pytest.raises(SetupError, match="no command /mcp__a__gret"):
            await expand_prompt(session, "/mcp__a__gret")


async def test_a_program_that_is_not_there_fails_alone_and_says_so(bench):
    async with bench.session({"a": {"command": "/no/such/program"}, "b": thin()}) as session:
        result = await session.call("mcp__a__echo", text="x")
        assert result.code == "call.unknown_tool"
        assert (await session.call("mcp__b__echo", text="x")).ok
        failed = await session.call("ListMcpResources", server="a")
        assert failed.code == "mcp.not_connected"
        assert "/no/such/program could not be started" in failed.text
        assert session.mcp.status()[0].status == "failed"


async def test_a_program_that_is_no_server_fails_within_the_start_deadline(bench, monkeypatch):
    monkeypatch.setenv("MCP_TIMEOUT", "400")
    async with bench.session({"a": thin("stubborn")}) as session:
        await session.mcp.settled()
        (status,) = session.mcp.status()
        assert status.status == "failed"
        assert "did not answer within 0.4 s" in status.error


@pytest.mark.parametrize(
    "trouble", [("deaf",), ("stubborn",), ("deaf", "grandchild"), ("grandchild",)]
)
async def test_closing_ends_servers_that_would_stay_and_leaves_nobody(bench, trouble):
    session = bench.session({"a": thin(*trouble), "b": thin(*trouble)})
    async with session:
        await until(lambda: len(bearers(bench.mark)) >= 2 * (3 if "grandchild" in trouble else 1))
    assert bearers(bench.mark) == []


async def test_a_reconnect_can_be_asked_for(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        before = bearers(bench.mark)
        await session.mcp.reconnect("a")
        assert bearers(bench.mark) != before
        assert (await session.call("mcp__a__echo", text="new")).text == "new"


@pytest.fixture
def fails_while(tmp_path, monkeypatch) -> tuple[Path, dict[str, Any]]:
    """A file, and a server that does not start while it is there."""
    monkeypatch.setattr(server_module, "FRESH_S", 0.0)
    flag = tmp_path / "flag"
    flag.touch()
    script = f"[ ! -e {flag} ] || {{ echo no config >&2; exit 3; }}; exec {sys.executable} {THIN}"
    return flag, {"command": "bash", "args": ["-c", script]}


async def test_a_call_of_a_server_that_failed_tries_it_again(bench, fails_while):
    flag, server = fails_while
    async with bench.session({"a": server}) as session:
        failed = await session.call("mcp__a__echo", text="x")
        assert failed.code == "call.unknown_tool"
        assert "The MCP server 'a' is not connected (it ended with exit code 3" in failed.text
        assert "no config" in failed.text
        flag.unlink()
        assert (await session.call("mcp__a__echo", text="back")).text == "back"


async def test_a_model_hears_why_a_search_finds_no_tool_and_can_reconnect(bench, fails_while):
    flag, server = fails_while
    async with bench.session({"a": server}) as session:
        await session.mcp.settled()
        (note,) = (await session.call("ToolSearch", query="echo")).notes
        assert note.startswith("The MCP server 'a' is not connected (it ended with exit code 3")
        assert note.endswith("To try again, search for 'reconnect:a'.")
        again = await session.call("ToolSearch", query="reconnect:a")
        assert (again.code, "no config" in again.text) == ("mcp.not_connected", True)
        assert (await session.call("ToolSearch", query="reconnect:b")).code == "mcp.unknown_server"
        flag.unlink()
        done = await session.call("ToolSearch", query="reconnect:a")
        assert done.text.startswith("The MCP server 'a' is connected, with ")
        assert (await session.call("mcp__a__echo", text="new")).text == "new"
        assert (await session.call("ToolSearch", query="nothing like it")).notes == ()


async def test_a_hundred_calls_at_once_all_get_their_own_answer(bench):
    async with bench.session({"a": thin()}) as session:
        calls = [("mcp__a__echo", {"text": str(n)}) for n in range(100)]
        results = await session.call_many(calls)
        assert [result.text for result in results] == [str(n) for n in range(100)]


async def test_a_hook_may_be_a_tool_of_a_server(bench):
    (bench.root / "x.txt").write_text("here")
    hook = {
        "type": "mcp_tool",
        "server": "a",
        "tool": "echo",
        "input": {"text": '{"decision": "block", "reason": "not ${tool_input.file_path}"}'},
    }
    wrong = {"type": "mcp_tool", "server": "gone", "tool": "echo"}
    hooks = {"PreToolUse": [{"matcher": "Read", "hooks": [hook, wrong]}]}
    async with bench.session({"a": thin()}, hooks=hooks) as session:
        blocked = await session.call("Read", file_path="x.txt")
        assert blocked.code in {"hook.blocked", "permission.denied"}
        assert f"not {bench.root}/x.txt" in blocked.text
        assert (await session.call("Glob", pattern="*")).ok


async def test_one_odd_tool_does_not_cost_the_others(bench):
    async with bench.session({"a": thin("odd")}) as session:
        await session.mcp.settled()
        (status,) = session.mcp.status()
        assert status.status == "connected"
        names = {tool.name for tool in status.tools}
        assert {"good", "no_type", "empty", "extra"} <= names
        assert not names & {"no_schema", "number", "endless", ""}
        assert (await session.call("mcp__a__good")).text == "good"


async def test_a_server_that_stops_listening_holds_nobody_up(bench):
    async with bench.session({"a": thin("asleep", timeout=1000), "b": thin()}) as session:
        await session.mcp.settled()
        big = {"text": "x" * 5_000_000}
        results = await session.call_many([("mcp__a__echo", big), ("mcp__b__echo", {"text": "b"})])
        assert [result.code for result in results] == ["mcp.timed_out", None]
    assert bearers(bench.mark) == []


async def test_a_flood_of_news_is_looked_into_a_few_times_only(bench):
    async with bench.session({"a": thin()}) as session:
        await session.mcp.settled()
        await session.call("mcp__a__shout")
        await asyncio.sleep(0.5)
        assert int((await session.call("mcp__a__asked")).text) < 10
        assert (await session.call("mcp__a__echo", text="calm")).text == "calm"
