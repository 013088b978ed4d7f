"""What lies on disk of a session holds no secret: events of every kind, and stored results."""

import json

import pytest
from tests.expected_types import expect_type

from handaxe.contract.content import TextBlock
from handaxe.contract.events import CallFinished, CallStarted, UserSaid
from handaxe.contract.messages import UserMessage
from handaxe.contract.ports.agents import AgentState
from handaxe.contract.result import ToolResult
from handaxe.storage.agent_files import AgentFiles
from handaxe.storage.event_log import EventLog, LoggedEvents
from handaxe.storage.result_store import DiskResultStore
from handaxe.text.redact import Redactor

SECRET = 'gh"p_Zx81\\kQpLm2\nZx81kQ\té'
MARK = "[redacted: GITHUB_TOKEN]"


@pytest.fixture
def redactor():
    return Redactor({"GITHUB_TOKEN": SECRET})


@pytest.mark.proves("S14", "SS-3")
async def test_events_of_every_kind_are_redacted_and_read_again(tmp_path, redactor):
    path = tmp_path / "events.jsonl"
    log = EventLog(path, redactor=redactor)
    data = {"stdout": SECRET, SECRET: [1, {"nested": json.dumps({"a": SECRET})}]}
    log.append(CallStarted(call_id="1", tool="Bash", input={"command": f"echo '{SECRET}'"}))
    log.append(CallFinished(call_id="1", result=ToolResult(text=f"<{SECRET}>", data=data)))
    log.append(CallFinished(call_id="2", result=ToolResult(text="clean", data={"n": 1.5})))
    log.append(UserSaid(message_id="m", message=UserMessage(content=(TextBlock(SECRET),))))
    await log.close()
    written = path.read_text()
    for part in ("kQpLm2", json.dumps(SECRET)[1:-1], json.dumps(SECRET, ensure_ascii=False)[1:-1]):
        assert part not in written
    events = [event for _, event in LoggedEvents(path)]
    assert expect_type(CallStarted, events[0]).input == {"command": f"echo '{MARK}'"}
    assert expect_type(CallFinished, events[1]).result.text == f"<{MARK}>"
    assert expect_type(CallFinished, events[1]).result.data == {
        "stdout": MARK,
        MARK: [1, {"nested": f'{{"a": "{MARK}"}}'}],
    }
    assert expect_type(CallFinished, events[2]).result == ToolResult(text="clean", data={"n": 1.5})
    assert log.result_of("1") == expect_type(CallFinished, events[1]).result


@pytest.mark.proves("S14")
def test_stored_results_are_redacted(tmp_path, redactor):
    store = DiskResultStore(tmp_path / "s" / "results", retention_days=30, redactor=redactor)
    kept = store.keep("1", f"a {SECRET} b\0")
    assert (tmp_path / kept).read_text() == f"a {MARK} b\\x00"
    raw = store.keep_bytes("2", b"\xff" + SECRET.encode() + b"\0", ".bin")
    assert (tmp_path / raw).read_bytes() == b"\xff" + MARK.encode() + b"\0"


@pytest.mark.proves("S14")
def test_what_is_kept_of_agents_is_redacted_and_for_nobody_else(tmp_path, redactor):
    files = AgentFiles(tmp_path / "agents", redactor)
    files.keep(
        AgentState(agent_id="a", agent_type="t", status="running", description=f"use {SECRET}")
    )
    files.say("a", f"it is {SECRET}\n")
    assert files.states()[0].description == f"use {MARK}"
    output = files.output_of("a")
    assert output.read_text() == f"it is {MARK}\n"
    assert output.stat().st_mode & 0o777 == 0o600
