"""The library's door: opening, calling, resuming, many at once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from tests.expected_types import require

import handaxe
from handaxe import Allow, Deny, Effects, Session, ToolCall, ToolContext, ToolResult
from handaxe.app.session import get_parts
from handaxe.app.tool_listing import get_tool_schema
from handaxe.contract.events import CallFinished, SessionStarted
from handaxe.contract.ports.files import Files
from handaxe.session.workdir import Workdir
from handaxe.storage.home import find_data_home
from handaxe.storage.sessions import LOG_NAME, list_sessions, read_history
from handaxe.undo.journal_files.journal_scan import find_damage


def log_of(session_id: str) -> Path:
    return find_data_home() / "sessions" / session_id / LOG_NAME


async def test_a_call_under_an_id_the_session_made_can_be_repeated_like_any(session, project):
    (project / "a.txt").write_text("hello\n")
    first = await session.call("Read", file_path="a.txt")
    (project / "a.txt").write_text("changed\n")
    again = await session.run(ToolCall(first.id, "Read", {"file_path": "a.txt"}))
    other = await session.run(ToolCall(first.id, "Read", {"file_path": "b.txt"}))
    assert (again.text, other.code) == (first.text, "call.bad_input")


@pytest.mark.proves("AR-1")
async def test_input_may_be_keywords_or_one_dict(session, project):
    (project / "a.txt").write_text("hello\n")
    first = await session.call("Read", file_path="a.txt")
    second = await session.call("Read", {"file_path": "a.txt"})
    assert first.ok
    assert first.text == second.text == "     1→hello"


@pytest.mark.proves("AR-1", "TC-6")
async def test_the_result_object_has_the_documented_shape(session, project):
    (project / "a.txt").write_text("hello\n")
    result = (await session.call("Read", file_path="a.txt")).to_json()
    assert json.loads(json.dumps(result)) == result
    assert {
        "id", "tool", "ok", "code", "text", "content", "data", "decision", "notes", "duration_ms",
        "tokens",
    } <= result.keys()  # fmt: skip
    assert result["decision"] == {
        "verdict": "allow",
        "by": "builtin",
        "rule": None,
        "source": None,
        "reason": "inside the project",
    }


@pytest.mark.proves("RG-6", "AR-1")
@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "json-schema"])
async def test_schemas_are_what_the_golden_files_say(session, provider):
    golden = Path(__file__).parent.parent / "goldens" / f"tools.{provider}.json"
    # Of the tools that change text one is shown; the others have their schemas too.
    unshown = [
        get_parts(session).catalog.find(name)[0]
        for name in ("ApplyPatch", "EditLines", "MultiEdit")
    ]
    schemas = session.tools(provider=provider)
    schemas += [get_tool_schema(tool, provider) for tool in unshown]
    shown = json.dumps(schemas, indent=2, ensure_ascii=False) + "\n"
    if os.environ.get("HANDAXE_WRITE_GOLDENS"):
        golden.write_text(shown)
    assert shown == golden.read_text()


async def test_an_unknown_provider_is_a_setup_error(session):
    with pytest.raises(handaxe.SetupError):
        session.tools(provider="nobody")


@pytest.mark.proves("RG-3")
async def test_own_tools_come_after_the_built_ins_and_leave_the_prefix_unchanged(project):
    @handaxe.tool(effects=Effects.none())
    async def aardvark(word: Annotated[str, "A word."]) -> str:
        """First in the alphabet."""
        return word

    async with Session(project) as plain, Session(project, tools=[aardvark]) as more:
        before = json.dumps(plain.tools("anthropic"))
        after = json.dumps(more.tools("anthropic"))
    assert after.startswith(before[:-1])
    assert [t["name"] for t in json.loads(after)][-1] == "aardvark"


@pytest.mark.proves("RG-3")
async def test_an_own_tool_cannot_take_the_name_of_a_built_in(project):
    @handaxe.tool(name="Read", effects=Effects.none())
    async def read(file_path: Annotated[str, "Where."]) -> str:
        """Not the real one."""
        return "hijacked"

    (project / "a.txt").write_text("real\n")
    async with Session(project, tools=[read]) as session:
        assert "real" in (await session.call("Read", file_path="a.txt")).text
        assert any("'Read' is ignored" in warning for warning in session.warnings)


@pytest.mark.proves("RG-3")
async def test_a_stand_in_has_the_built_ins_place_and_nobody_later_takes_it(project):
    @handaxe.tool(name="Read", effects=Effects.none(), replaces_builtin=True)
    async def read(file_path: Annotated[str, "Where."]) -> str:
        """Read it in another way."""
        return "mine"

    async with Session(project) as plain, Session(project, tools=[read]) as session:
        before = [tool["name"] for tool in plain.tools()]
        assert [tool["name"] for tool in session.tools()] == before
        get_parts(session).catalog.replace_external("a server", [read])
        get_parts(plain).catalog.replace_external("a server", [read])
        assert (await session.call("Read", file_path="a.txt")).text == "mine"
        assert (await plain.call("Read", file_path="a.txt")).text != "mine"


@pytest.mark.proves("RG-4")
async def test_presets_and_lists_choose_tools(project):
    async with Session(project, tools="read-only") as session:
        names = [tool["name"] for tool in session.tools()]
        assert "Read" in names
        assert "Write" not in names
        assert (await session.call("Write", file_path="a", content="")).code == "call.unknown_tool"
    async with Session(project, tools=["Read", "Edit"]) as session:
        assert [tool["name"] for tool in session.tools()] == ["Edit", "Read"]
    with pytest.raises(handaxe.SetupError, match="Did you mean 'Read'"):
        Session(project, tools=["Raed"])


@pytest.mark.proves("TC-12")
async def test_an_own_tool_gets_schema_coercion_permission_and_store_for_nothing(project):
    @handaxe.tool(effects=Effects.none(), uses=(Files, Workdir))
    async def line_count(
        file_path: Annotated[str, "The file."],
        times: Annotated[int, "How often."],
        ctx: ToolContext,
    ) -> ToolResult:
        """Count lines."""
        path = ctx[Workdir].resolve(file_path)
        text = await ctx[Files].read(path)
        return ToolResult(f"{len(text.splitlines())} lines\n" * times)

    (project / "a.txt").write_text("1\n2\n")
    (project / "secret.txt").write_text("x\n")
    async with Session(project, tools=[line_count], deny=["Read(secret.txt)"]) as session:
        result = await session.call("line_count", file_path="a.txt", times="2")
        assert result.text == "2 lines\n2 lines\n"
        assert result.notes
        assert (
            await session.call("line_count", file_path="a.txt", times="x")
        ).code == "call.bad_input"
        denied = await session.call("line_count", file_path="secret.txt", times=1)
        assert denied.code == "permission.denied"
        asked = await session.call("line_count", file_path="/etc/passwd", times=1)
        assert asked.code == "permission.asked"
        long = await session.call("line_count", file_path="a.txt", times=50_000)
        stored = long.text.partition("saved to: ")[2].partition("\n")[0]
        again = await session.call("Read", file_path=stored, offset=-1)
        assert again.ok, again.text
        assert "2 lines" in again.text


async def test_a_tool_cannot_open_through_the_port_what_permission_does_not_cover(project):
    @handaxe.tool(effects=Effects.none(), uses=(Files,))
    async def peek(word: Annotated[str, "Ignored."], ctx: ToolContext) -> str:
        """Look where it was not asked to."""
        return await ctx[Files].read("/etc/hostname")

    async with Session(project, tools=[peek]) as session:
        assert (await session.call("peek", word="x")).code == "permission.asked"


@pytest.mark.proves("TC-4")
async def test_the_callback_is_asked_and_its_answer_counts(project):
    asked = []

    async def on_ask(request):
        asked.append(request)
        return Allow() if request.input["file_path"].endswith("yes.txt") else Deny("not this one")

    async with Session(project, on_ask=on_ask) as session:
        yes = await session.call("Write", file_path="yes.txt", content="")
        no = await session.call("Write", file_path="no.txt", content="")
    assert yes.ok
    assert require(yes.decision).by == "callback"
    assert no.code == "permission.denied"
    assert "not this one" in no.text
    assert [request.tool for request in asked] == ["Write", "Write"]
    assert asked[0].input["file_path"] == str(project / "yes.txt")


async def test_a_callback_that_fails_or_answers_nonsense_means_no(project):
    async def fails(request) -> Allow:
        raise ValueError("planned")

    async def mumbles(request) -> Any:
        return True

    for on_ask in (fails, mumbles):
        async with Session(project, on_ask=on_ask) as session:
            result = await session.call("Write", file_path="a.txt", content="")
            assert result.code == "permission.denied"
    assert not (project / "a.txt").exists()


@pytest.mark.proves("PL-4", "SS-3")
async def test_a_session_is_resumed_with_what_it_knew(project):
    (project / "a.txt").write_text("one\n")
    async with Session(project, permission_mode="acceptEdits", session_id="s1") as session:
        await session.call("Read", file_path="a.txt")
        edit = ToolCall(
            "e1", "Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "two"}
        )
        first = await session.run(edit)
    async with Session(project, permission_mode="acceptEdits", session_id="s1") as session:
        replayed = await session.run(edit)
        assert (replayed.ok, replayed.text) == (True, first.text)
        again = await session.call("Edit", file_path="a.txt", old_string="two", new_string="three")
        assert again.ok, again.text
    assert (project / "a.txt").read_text() == "three\n"


@pytest.mark.proves("SS-3")
async def test_calls_cut_off_by_a_crash_are_closed_on_load(project):
    async with Session(project, session_id="s1") as session:
        await session.call("Read", file_path="nothing")
    log = log_of("s1")
    whole = log.read_bytes().splitlines(keepends=True)
    started = next(i for i, line in enumerate(whole) if b"call_started" in line)
    log.write_bytes(b"".join(whole[: started + 1]))
    async with Session(project, session_id="s1"):
        pass
    history = read_history(log)
    assert history.open_calls == []
    assert history.failed_calls == 1


@pytest.mark.proves("SS-3")
async def test_a_log_cut_at_any_byte_loads_and_says_what_was_lost(project):
    (project / "a.txt").write_text("one\n")
    async with Session(project, session_id="s1") as session:
        for _ in range(3):
            await session.call("Read", file_path="a.txt")
    log = log_of("s1")
    whole = log.read_bytes()
    for cut in range(0, len(whole), 7):
        log.write_bytes(whole[:cut])
        async with Session(project, session_id="s1") as session:
            assert (await session.call("Read", file_path="a.txt")).ok
        assert read_history(log).open_calls == []


@pytest.mark.proves("SS-3")
async def test_sessions_are_listed_the_last_used_first(project):
    for name in ("first", "second"):
        async with Session(project, session_id=name) as session:
            await session.call("Read", file_path="nothing")
    listed = list_sessions(find_data_home(), find_damage)
    assert [summary.id for summary in listed] == ["second", "first"]
    assert listed[0].calls == listed[0].failed_calls == 1
    assert listed[0].is_closed


async def test_an_idle_session_writes_nothing(project):
    async with Session(project):
        pass
    assert not (find_data_home() / "sessions").exists()


@pytest.mark.parametrize("bad", ["../x", "a/b", "", ".", "x" * 65, "a\0b"])
async def test_a_session_id_cannot_leave_the_data_directory(project, bad):
    if bad:
        with pytest.raises(handaxe.SetupError):
            Session(project, session_id=bad)


async def test_a_closed_session_answers_and_does_nothing(project):
    session = Session(project, permission_mode="acceptEdits")
    await session.close()
    result = await session.call("Write", file_path="a.txt", content="")
    assert result.code == "call.cancelled"
    assert not (project / "a.txt").exists()


@pytest.mark.proves("SS-5")
async def test_sessions_share_nothing(tmp_path):
    roots = [tmp_path / str(i) for i in range(200)]
    for root in roots:
        root.mkdir()
        (root / "a.txt").write_text(f"{root.name}\n")
    sessions = [Session(root) for root in roots]
    before = os.getcwd()
    results = await asyncio.gather(*(s.call("Read", file_path="a.txt") for s in sessions))
    assert [r.text for r in results] == [f"     1→{root.name}" for root in roots]
    assert os.getcwd() == before
    for session in sessions:
        await session.close()


@pytest.mark.proves("SS-2")
async def test_extra_directories_are_worked_in_and_others_ask(project, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    async with Session(project, add_dirs=[other], permission_mode="acceptEdits") as session:
        assert (await session.call("Write", file_path=str(other / "a"), content="")).ok
        outside = await session.call("Write", file_path=str(tmp_path / "b"), content="")
        assert outside.code == "permission.asked"


async def test_a_project_opened_through_a_link_is_known_by_both_names(project, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(project)
    (project / "a.txt").write_text("x\n")
    async with Session(link) as session:
        assert (await session.call("Read", file_path=str(link / "a.txt"))).ok
        assert (await session.call("Read", file_path=str(project / "a.txt"))).ok


async def test_a_directory_added_later_through_a_link_is_known_by_that_name(project, tmp_path):
    more, link = tmp_path / "more", tmp_path / "link"
    more.mkdir()
    link.symlink_to(more)
    async with Session(project) as session:
        get_parts(session).set_directories([link])
        assert session.workdir.resolve(f"{link}/a.txt") == str(more / "a.txt")
        get_parts(session).set_directories([])
        assert session.workdir.resolve(f"{link}/a.txt") == f"{link}/a.txt"


async def test_settings_that_are_wrong_name_the_nearest_key(project):
    with pytest.raises(handaxe.SetupError, match="line_format"):
        Session(project, settings={"read": {"line_fromat": "tab"}})
    with pytest.raises(handaxe.SetupError):
        Session(project, permission_mode="everything")
    with pytest.raises(handaxe.SetupError):
        Session(project / "missing")


async def test_listeners_hear_every_event(session, project):
    heard = []
    session.subscribe(heard.append)
    await session.call("Read", file_path="nothing")
    await asyncio.sleep(0)
    assert isinstance(heard[0], SessionStarted)
    assert isinstance(heard[-1], CallFinished)


@pytest.mark.proves("AR-1")
def test_the_synchronous_facade_does_the_same(project):
    (project / "a.txt").write_text("x\n")
    with handaxe.connect(project, permission_mode="acceptEdits") as connection:
        assert connection.call("Read", file_path="a.txt").ok
        results = connection.call_many([("Read", {"file_path": "a.txt"}), ("Nope", {})])
        assert [r.ok for r in results] == [True, False]
        assert connection.tools(provider="openai")


@pytest.mark.proves("SS-3")
def test_a_killed_process_leaves_whole_files_and_a_log_that_loads(project, tmp_path):
    (project / "a.txt").write_text("0\n")
    code = textwrap.dedent(f"""
        import asyncio, handaxe
        async def main():
            async with handaxe.Session({str(project)!r}, permission_mode="acceptEdits", session_id="k") as s:
                await s.call("Read", file_path="a.txt")
                for i in range(100000):
                    r = await s.call("Write", file_path="a.txt", content=str(i) * 1000 + "\\n")
                    assert r.ok, r.text
                    print(i, flush=True)
        asyncio.run(main())
    """)
    for lines in (1, 5, 20):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        for _ in range(lines):
            assert require(process.stdout).readline()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        content = (project / "a.txt").read_text()
        number = content[: (len(content) - 1) // 1000]
        assert content == number * 1000 + "\n"
        history = read_history(log_of("k"))
        assert history.calls


@pytest.mark.proves("RG-1", "RG-2")
async def test_a_blanket_deny_hides_the_tool_and_a_scoped_one_keeps_it(project):
    async with Session(project, deny=["Write", "Edit(secret/**)"]) as session:
        names = [tool["name"] for tool in session.tools()]
        assert "Write" not in names
        assert "Edit" in names
        assert (await session.call("Write", file_path="a", content="")).code == "permission.denied"


async def test_a_hard_link_to_the_outside_asks(project, tmp_path):
    (tmp_path / "outside.txt").write_text("x\n")
    os.link(tmp_path / "outside.txt", project / "a.txt")
    (project / "b.txt").write_text("x\n")
    os.link(project / "b.txt", project / "c.txt")
    async with Session(project, permission_mode="acceptEdits") as session:
        for name in ("a.txt", "b.txt"):
            await session.call("Read", file_path=name)
        outside = await session.call("Write", file_path="a.txt", content="y\n")
        assert outside.code == "permission.asked"
        inside = await session.call("Write", file_path="b.txt", content="y\n")
        assert inside.code != "permission.asked"


@pytest.mark.proves("RG-4")
async def test_an_environment_variable_chooses_the_simple_preset(project, monkeypatch):
    monkeypatch.setenv("HANDAXE_SIMPLE", "1")
    async with Session(project) as session:
        assert (
            {"Edit", "Read"}
            <= {tool["name"] for tool in session.tools()}
            <= {"Bash", "Edit", "Read"}
        )


@pytest.mark.proves("TC-6")
async def test_a_result_becomes_the_block_its_provider_expects(session):
    result = await session.call("Read", file_path="missing")
    block = session.tool_result(result, "anthropic")
    assert block["type"] == "tool_result"
    assert block["tool_use_id"] == result.id
    assert block["is_error"] is True
    assert session.tool_result(result, "openai")["tool_call_id"] == result.id


@pytest.mark.proves("TC-8")
async def test_a_tool_is_on_offer_only_where_its_ports_are_and_it_is_enabled(project):
    class Elsewhere(handaxe.Tool[handaxe.ToolArgs]):
        """Needs what nobody offers."""

        uses = (dict,)

    class Off(handaxe.Tool[handaxe.ToolArgs]):
        """Not here."""

        def enabled(self):
            return False

    async with Session(project, tools=[Elsewhere, Off]) as session:
        names = {tool["name"] for tool in session.tools()}
        assert not {"Elsewhere", "Off"} & names
        assert (await session.call("Off")).code == "call.unknown_tool"


@pytest.mark.proves("TC-1")
async def test_a_call_by_an_old_name_works_and_is_noted(project):
    class Renamed(handaxe.Tool[handaxe.ToolArgs]):
        """New name."""

        aliases = ("OldName",)
        effects = Effects.none()

        async def call(self, args, ctx):
            return ToolResult("done")

    async with Session(project, tools=[Renamed]) as session:
        result = await session.call("OldName")
        assert (result.ok, result.tool) == (True, "Renamed")
        assert "Renamed" in result.notes[0]


@pytest.mark.proves("TC-2")
async def test_a_tool_that_says_nothing_is_assumed_at_its_worst(project):
    class Silent(handaxe.Tool[handaxe.ToolArgs]):
        """Says nothing."""

        async def call(self, args, ctx):
            return ToolResult("ran")

    tool = Silent()
    assert not tool.effects.is_read_only
    assert tool.effects.is_destructive
    assert tool.effects.collides(tool.effects)
    async with Session(project, tools=[Silent], permission_mode="acceptEdits") as session:
        assert (await session.call("Silent")).code == "permission.asked"


@pytest.mark.proves("PM-1")
async def test_a_classifier_answers_in_auto_mode_and_hands_over_when_it_keeps_refusing(project):
    asked, said = [], []

    async def on_ask(request):
        asked.append(request.tool)
        return Allow()

    async def classify(request):
        said.append(request.input["file_path"])
        return Deny("no") if "bad" in request.input["file_path"] else Allow()

    async with Session(
        project, permission_mode="auto", classifier=classify, on_ask=on_ask
    ) as session:
        good = await session.call("Write", file_path="good.txt", content="")
        assert good.ok
        assert require(good.decision).by == "mode"
        protected = await session.call("Write", file_path=".git/config", content="")
        assert protected.ok
        assert asked == ["Write"]
        for number in range(3):
            refused = await session.call("Write", file_path=f"bad{number}.txt", content="")
            assert refused.code == "permission.denied"
        assert (await session.call("Write", file_path="bad.txt", content="")).ok
        assert asked == ["Write", "Write"]
    async with Session(project, classifier=classify) as session:
        assert (
            await session.call("Write", file_path="x.txt", content="")
        ).code == "permission.asked"


@pytest.mark.proves("PM-1")
async def test_a_session_can_be_told_never_to_prompt(project):
    async def on_ask(request):
        return Allow()

    async with Session(project, on_ask=on_ask, never_prompt=True) as session:
        assert (
            await session.call("Write", file_path="x.txt", content="")
        ).code == "permission.asked"


class Shapeless(handaxe.Tool[int]):
    """A tool that says nothing of its input."""


@pytest.mark.parametrize(
    "wrong",
    [
        {"root": 5}, {"root": ".\0"}, {"allow": 5}, {"deny": [5]}, {"settings": 5},
        {"session_id": 5}, {"home": 5}, {"on_ask": 5}, {"tools": [Shapeless]},
        {"tools": [handaxe.Tool]},
    ],
    ids=str,
)  # fmt: skip
async def test_wrong_arguments_are_a_sentence_for_whoever_wrote_them(project, wrong):
    with pytest.raises(handaxe.SetupError):
        Session(**{"root": project, **wrong})


@pytest.mark.proves("PL-4")
@pytest.mark.parametrize("harm", ["cut", "garbled", "shifted"])
async def test_a_repeated_call_whose_result_the_log_lost_is_answered_and_not_made(project, harm):
    async with Session(project, session_id="s", permission_mode="acceptEdits") as session:
        call = ToolCall("w", "Write", {"file_path": "a.txt", "content": "1"})
        assert (await session.run(call)).ok
        get_parts(session).recorder.flush()
        log = log_of("s")
        content = log.read_bytes()
        other = content.replace(b'"w"', b'"v"')
        log.write_bytes({"cut": b"", "garbled": b"x" * len(content), "shifted": other}[harm])
        (project / "a.txt").unlink()
        again = await session.run(call)
    assert (again.ok, again.code, again.id) == (False, "call.result_lost", "w")
    assert not (project / "a.txt").exists()


@pytest.mark.proves("SS-3")
async def test_a_log_that_is_removed_begins_anew_and_that_is_said(project):
    (project / "a.txt").write_text("hello\n")
    async with Session(project, session_id="s") as session:
        await session.call("Read", file_path="a.txt")
        get_parts(session).recorder.flush()
        log_of("s").unlink()
        first = get_parts(session).recorder.logged(await session.call("Read", file_path="a.txt"))
    assert "removed while the session ran" in first.notes[0]
    history = read_history(log_of("s"))
    assert history.started is not None
    assert len(history.calls) == 1


@pytest.mark.proves("SS-3")
@pytest.mark.parametrize("kept", ["nothing", "half a line", "two lines"])
@pytest.mark.parametrize("rests", [False, True])
async def test_a_log_that_is_cut_short_goes_on_and_that_is_said(project, kept, rests):
    (project / "a.txt").write_text("hello\n")
    async with Session(project, session_id="s") as session:
        session.set_mode("acceptEdits")
        call = ToolCall("early", "Read", {"file_path": "a.txt"})
        await session.run(call)
        get_parts(session).recorder.flush()
        if rests:
            get_parts(session).recorder.log._lines.close()
        lines = log_of("s").read_bytes().splitlines(keepends=True)
        left = {"nothing": b"", "half a line": lines[0][:20], "two lines": b"".join(lines[:2])}[
            kept
        ]
        os.truncate(log_of("s"), len(left))
        assert (await session.call("Write", file_path="b.txt", content="x")).ok
        told = await session.call("Read", file_path="b.txt")
        assert "cut short while the session ran" in told.notes[0]
        assert (await session.run(call)).code == "call.result_lost"
    history = read_history(log_of("s"))
    assert history.started is not None
    assert (history.started.root, history.mode) == (str(project), "acceptEdits")
    assert history.open_calls == []
    assert len(history.calls) == 2
    assert history.is_closed


async def test_a_log_that_is_removed_while_nothing_happens_begins_anew(project):
    (project / "a.txt").write_text("hello\n")
    async with Session(project, session_id="s") as session:
        await session.call("Read", file_path="a.txt")
        get_parts(session).recorder.flush()
        get_parts(session).recorder.log._lines.close()
        log_of("s").unlink()
        first = get_parts(session).recorder.logged(await session.call("Read", file_path="a.txt"))
    assert "removed while the session ran" in first.notes[0]
    assert read_history(log_of("s")).started is not None


async def test_a_resumed_session_whose_log_is_removed_says_again_whose_it_is(project):
    (project / "a.txt").write_text("hello\n")
    for is_second in (False, True):
        async with Session(project, session_id="s") as session:
            await session.call("Read", file_path="a.txt")
            get_parts(session).recorder.flush()
            if is_second:
                log_of("s").unlink()
                await session.call("Read", file_path="a.txt")
    started = read_history(log_of("s")).started
    assert started is not None
    assert started.root == str(project)


@pytest.mark.parametrize("in_the_way", ["directory", "fifo"])
async def test_a_log_that_is_none_is_said_and_hides_no_other_session(project, in_the_way):
    (project / "a.txt").write_text("hello\n")
    async with Session(project, session_id="good") as session:
        await session.call("Read", file_path="a.txt")
    log = log_of("odd")
    log.parent.mkdir()
    log.mkdir() if in_the_way == "directory" else os.mkfifo(log)
    with pytest.raises(handaxe.SetupError, match="cannot be read"):
        Session(project, session_id="odd")
    listed = {found.id: found for found in list_sessions(find_data_home(), find_damage)}
    assert listed["good"].calls == 1
    assert "cannot be read" in listed["odd"].damage[0]


async def test_calls_without_an_id_get_one_each(session, project):
    (project / "a.txt").write_text("hello\n")
    call = ToolCall("", "Read", {"file_path": "a.txt"})
    results = [await session.run(call), await session.run(call)]
    assert all(result.ok for result in results)
    assert len({result.id for result in results}) == 2


@pytest.mark.parametrize("error", [SystemExit(2), asyncio.CancelledError()], ids=repr)
async def test_hooks_and_callbacks_that_leave_take_nobody_along(project, error):
    (project / "a.txt").write_text("hello\n")

    async def leave(_):
        raise error

    async with Session(project, hooks={"PreToolUse": [leave]}) as session:
        assert (await session.call("Read", file_path="a.txt")).code == "hook.blocked"
    async with Session(project, hooks={"PostToolUse": [leave]}) as session:
        assert (await session.call("Read", file_path="a.txt")).ok
    async with Session(project, on_ask=leave) as session:
        result = await session.call("Write", file_path="b.txt", content="x")
    assert result.code == "permission.denied"
    assert not (project / "b.txt").exists()


def test_a_closed_connection_answers_as_a_closed_session_does(project):
    with handaxe.connect(project) as tools:
        pass
    assert tools.call("Read", file_path="a.txt").code == "call.cancelled"
    assert [r.code for r in tools.call_many([("Read", {})])] == ["call.cancelled"]


async def test_a_session_needs_no_directory_of_the_process(project, tmp_path, monkeypatch):
    (project / "a.txt").write_text("hello\n")
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    async with Session(project) as session:
        assert (await session.call("Read", file_path="a.txt")).ok
    with pytest.raises(handaxe.SetupError):
        Session(".")


async def test_a_journal_that_is_none_stops_changes_and_nothing_else(project):
    async with Session(project, session_id="s", permission_mode="acceptEdits") as session:
        await session.call("Write", file_path="a.txt", content="hello\n")
    journal = log_of("s").with_name("journal.jsonl")
    journal.unlink()
    journal.mkdir()
    async with Session(project, session_id="s", permission_mode="acceptEdits") as session:
        assert (await session.call("Read", file_path="a.txt")).ok
        refused = await session.call("Write", file_path="b.txt", content="x")
        assert session.history() == []
    assert refused.code == "undo.not_recorded"
    assert not (project / "b.txt").exists()


@pytest.mark.proves("TC-6")
async def test_a_result_object_is_what_json_gives_back(project):
    @handaxe.tool(effects=Effects.pure())
    async def pair() -> ToolResult:
        """Give a pair."""
        return ToolResult("given", data={"pair": (1, ("a",)), "items": [(2,)]})

    (project / "a.txt").write_text("x\n")
    calls = [
        ("Bash", {"command": "ls && rm -rf x"}),
        ("Bash", {"command": "ls"}),
        ("Read", {"file_path": "a.txt"}),
        ("Grep", {"pattern": "x"}),
        ("pair", {}),
        ("Nope", {}),
    ]
    async with Session(project, tools=[pair]) as session:
        for name, given in calls:
            told = (await session.call(name, given)).to_json()
            assert json.loads(json.dumps(told)) == told
            jsonschema.validate(told, handaxe.result_schema())
