"""The synchronous door, as programs with threads use it."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.agent.players import Player, calls, says
from tests.waiting import HANG_S

import handaxe
from handaxe import ToolCall
from handaxe.agent.events import RunFinished, ToolAnswered
from handaxe.app.sync import Connection
from handaxe.contract.events import CallStarted


def codes_of_calls(
    tools: Connection, codes: list[str | None], is_under_way: threading.Event
) -> None:
    while "call.cancelled" not in codes:
        codes.append(tools.call("Read", file_path="a.txt").code)
        is_under_way.set()


def test_a_closed_connection_makes_no_agent_and_closes_again(project):
    with handaxe.connect(project) as tools:
        tools.close()
        with pytest.raises(RuntimeError, match="The session is closed"):
            tools.agent(Player(says("Hi.")))


@pytest.mark.proves("AR-1")
@pytest.mark.parametrize("attempt", range(15))
def test_calls_of_other_threads_are_answered_whenever_a_connection_closes(project, attempt):
    (project / "a.txt").write_text("x\n")
    tools = handaxe.connect(project)
    told: list[list[str | None]] = [[], [], []]
    is_under_way = threading.Event()
    callers = [
        threading.Thread(target=codes_of_calls, args=(tools, codes, is_under_way), daemon=True)
        for codes in told
    ]
    for caller in callers:
        caller.start()
    is_under_way.wait(HANG_S)
    closers = [threading.Thread(target=tools.close, daemon=True) for _ in range(2)]
    for closer in closers:
        closer.start()
    for thread in (*callers, *closers):
        thread.join(HANG_S)
    assert not [thread for thread in (*callers, *closers) if thread.is_alive()]
    assert all(set(codes) <= {None, "call.cancelled"} for codes in told)


@pytest.mark.proves("AR-1")
def test_a_connection_has_everything_that_a_session_has(project):
    heard = []
    with handaxe.connect(project, permission_mode="acceptEdits") as tools:
        stop = tools.subscribe(heard.append)
        written = tools.run(ToolCall("w1", "Write", {"file_path": "a.txt", "content": "one\n"}))
        again = tools.run(ToolCall("w1", "Write", {"file_path": "a.txt", "content": "one\n"}))
        assert written.ok
        assert again == written
        read, missing = tools.run_many(
            [ToolCall(f"r{name}", "Read", {"file_path": name}) for name in ("a.txt", "b.txt")]
        )
        assert (read.ok, missing.code) == (True, "file.not_found")
        turn = tools.user_turn([read, missing], "anthropic")
        assert [block["tool_use_id"] for block in turn["content"]] == ["ra.txt", "rb.txt"]
        assert [change.call_id for change in tools.history()] == ["w1"]
        assert tools.undo().ok
        assert not (project / "a.txt").exists()
        assert tools.redo().ok
        assert (project / "a.txt").read_text() == "one\n"
        assert tools.undo("w1", force=True).ok
        stop()
        count = len(heard)
        tools.set_mode("plan")
        refused = tools.call("Write", file_path="c.txt", content="")
        assert refused.code == "permission.asked"
        assert len(heard) == count
        assert tools.cancel() == 0
        assert tools.id
        assert tools.warnings == ()
        assert {tool["name"] for tool in tools.tools()} >= {"Read", "Grep"}
    assert tools.call("Read", file_path="a.txt").code == "call.cancelled"


async def test_a_connection_works_inside_a_running_event_loop(project):
    (project / "a.txt").write_text("hello\n")
    with handaxe.connect(project) as tools:
        assert tools.call("Read", file_path="a.txt").ok
        with tools.agent(
            Player(calls(("c1", "Glob", {"pattern": "*"})), says("one file"))
        ) as agent:
            assert agent.ask("look").result == "one file"


def test_many_threads_use_one_connection_at_once(project):
    for number in range(8):
        (project / f"{number}.txt").write_text(f"{number}\n")
    with handaxe.connect(project) as tools, ThreadPoolExecutor(8) as pool:
        results = pool.map(lambda n: tools.call("Read", file_path=f"{n % 8}.txt"), range(64))
        assert [result.text.split("→")[1].strip() for result in results] == [
            str(number % 8) for number in range(64)
        ]


def test_a_call_is_cancelled_from_another_thread(project):
    began = threading.Event()
    with handaxe.connect(project, permission_mode="bypassPermissions") as tools:
        tools.subscribe(lambda event: began.set() if isinstance(event, CallStarted) else None)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(tools.call, "Bash", command="sleep 600")
            began.wait(HANG_S)
            while not waiting.done():
                tools.cancel()
            assert waiting.result().code == "call.cancelled"


def test_an_agent_of_a_connection_tells_its_events_and_can_be_left(project):
    (project / "a.txt").write_text("hello\n")
    model = Player(calls(("c1", "Read", {"file_path": "a.txt"})), says("hello"), says("never"))
    with handaxe.connect(project) as tools:
        agent = tools.agent(model)
        events = list(agent.run("What does a.txt say?"))
        assert isinstance(events[-1], RunFinished)
        assert events[-1].result == "hello"
        assert any(isinstance(event, ToolAnswered) for event in events)
        for _ in agent.run("And now?"):
            break
        assert agent.interrupt() is False
        assert len(agent.messages) >= 4


def test_a_plain_function_answers_questions_and_may_use_the_connection(project):
    (project / "rules.txt").write_text("no\n")

    def on_ask(request):
        said = tools.call("Read", file_path="rules.txt").text
        return handaxe.Deny(f"The rules say {said.split('→')[1].strip()}.")

    with handaxe.connect(project, on_ask=on_ask) as tools:
        refused = tools.call("Write", file_path="x.txt", content="")
    assert refused.code == "permission.denied"
    assert "The rules say no." in refused.text


def test_a_callback_in_the_thread_of_the_session_is_refused_instead_of_hanging(project):
    told = []

    def listen(event):
        try:
            tools.call("Glob", pattern="*")
        except RuntimeError as error:
            told.append(str(error))

    with handaxe.connect(project) as tools:
        tools.subscribe(listen)
        tools.call("Glob", pattern="*")
    assert "cannot wait for it" in told[0]


def test_wrong_options_raise_where_the_connection_is_made_and_leave_no_thread(project):
    before = threading.active_count()
    with pytest.raises(handaxe.SetupError):
        handaxe.connect(project, permission_mode="nonsense")
    assert threading.active_count() == before
