"""Tools that change only what a session remembers: they survive a restart and need no question."""

import asyncio

import msgspec
import pytest
from tests.waiting import until

from handaxe import Allow, Deny, Session, open_tasks
from handaxe.app.session import get_parts
from handaxe.contract.ports.questions import Answers

TODO = {"content": "Run", "status": "pending", "activeForm": "Running"}
QUESTION = {
    "question": "Which way?",
    "header": "Way",
    "options": [{"label": "Left", "description": "l"}, {"label": "Right", "description": "r"}],
}


@pytest.mark.proves("SS-2")
async def test_todos_brevity_and_tasks_survive_a_restart(tmp_path):
    async with Session(tmp_path, home=tmp_path / "home") as session:
        await session.call("TodoWrite", todos=[TODO])
        await session.call("Brief")
        await session.call("TaskCreate", subject="A", description="a")
    async with Session(tmp_path, home=tmp_path / "home", session_id=session.id) as again:
        before = (await again.call("TodoWrite", todos=[])).data["oldTodos"]
        assert [todo["content"] for todo in before] == ["Run"]
        assert "Unchanged" in (await again.call("Brief")).text
        assert "#1" in (await again.call("TaskList")).text


async def test_two_sessions_share_a_named_task_list(tmp_path):
    options = {"home": tmp_path / "home", "settings": {"task_list": "team"}}
    async with Session(tmp_path, **options) as one, Session(tmp_path, **options) as other:
        await one.call("TaskCreate", subject="A", description="a")
        assert "#1 [pending] A" in (await other.call("TaskList")).text


async def test_a_name_that_is_a_path_is_no_task_list(tmp_path):
    from handaxe.contract.faults import SetupError

    with pytest.raises(SetupError, match="task list"):
        Session(tmp_path, home=tmp_path / "home", settings={"task_list": "../x"})


@pytest.mark.proves("BT-23")
async def test_sleep_is_woken_by_the_users_input(tmp_path):
    async with Session(tmp_path, home=tmp_path / "home") as session:
        call = asyncio.ensure_future(session.call("Sleep", seconds=600))
        await until(lambda: get_parts(session).services.memory.wakeups.wake("a task ended."))
        result = await call
    assert result.data["wokenBy"] == "a task ended."


@pytest.mark.proves("BT-20")
async def test_a_person_who_agrees_to_the_plan_ends_plan_mode(tmp_path):
    asked = []

    async def agree(request):
        asked.append(request)
        return Allow()

    async with Session(
        tmp_path, home=tmp_path / "home", permission_mode="acceptEdits", on_ask=agree
    ) as session:
        await session.call("EnterPlanMode")
        names = [tool["name"] for tool in session.tools()]
        assert not {"Write", "Edit", "NotebookEdit"} & set(names)
        result = await session.call("ExitPlanMode", plan="# Change a file")
        assert result.ok, result.text
        assert asked[0].preview[0].text == "# Change a file"
        assert session.permissions.mode == "acceptEdits"
        assert "Write" in [tool["name"] for tool in session.tools()]
        kept = await session.call("Read", file_path=result.data["filePath"])
        assert "# Change a file" in kept.text


@pytest.mark.proves("BT-20")
async def test_a_person_who_disagrees_keeps_plan_mode_on(tmp_path):
    async def refuse(_request):
        return Deny("Smaller steps, please.")

    async with Session(
        tmp_path, home=tmp_path / "home", permission_mode="plan", on_ask=refuse
    ) as session:
        result = await session.call("ExitPlanMode", plan="# Everything")
        assert (result.ok, result.code) == (False, "permission.denied")
        assert "Smaller steps, please." in result.text
        assert session.permissions.mode == "plan"


@pytest.mark.proves("BT-17")
@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"Which way?": "Left"}, "→ Left"),
        ("Neither, go back.", "The user responded: Neither, go back."),
        (Answers(answers={"Which way?": "Left, Right"}), "→ Left, Right"),
    ],
)
async def test_the_users_answer_reaches_the_model(tmp_path, said, text):
    async def answer(_questions):
        return said

    async with Session(tmp_path, home=tmp_path / "home", on_question=answer) as session:
        result = await session.call("AskUserQuestion", questions=[QUESTION])
    assert result.ok
    assert text in result.text


@pytest.mark.proves("BT-17")
async def test_no_answer_is_said_plainly(tmp_path):
    async def answer(_questions):
        return None

    async with Session(tmp_path, home=tmp_path / "home", on_question=answer) as session:
        result = await session.call("AskUserQuestion", questions=[QUESTION])
        twice = await session.call("AskUserQuestion", questions=[QUESTION, QUESTION])
        none = await session.call("AskUserQuestion", questions=[])
    assert result.code == "user.no_answer"
    assert twice.code == "user.same_question"
    assert none.code == "call.bad_input"


@pytest.mark.proves("BT-13")
async def test_only_one_of_many_agents_gets_a_task(tmp_path):
    from handaxe.storage.task_lists import DiskTaskList

    lists = [DiskTaskList(tmp_path / "tasks") for _ in range(8)]
    await lists[0].create("A", "a", None, {})

    def claim(number: int) -> bool:
        from handaxe.contract.faults.agent import TaskClaimed
        from handaxe.contract.ports.task_list import TaskChange

        change = TaskChange(owner=f"agent {number}", status="in_progress")
        try:
            asyncio.run(lists[number].change("1", change))
        except TaskClaimed:
            return False
        return True

    won = await asyncio.gather(*(asyncio.to_thread(claim, number) for number in range(8)))
    assert won.count(True) == 1


async def test_a_task_that_is_under_way_in_one_session_is_not_begun_in_another(project):
    shared = {"task_list": "team"}
    async with Session(project, settings=shared) as ann, Session(project, settings=shared) as bob:
        for subject in ("A", "B"):
            await ann.call("TaskCreate", subject=subject, description="d")

        def begin(session, task_id, **more):
            return session.call("TaskUpdate", taskId=task_id, status="in_progress", **more)

        both = await asyncio.gather(begin(ann, "1"), begin(bob, "1"))
        assert sorted(str(result.code) for result in both) == ["None", "task.claimed"]
        assert (await begin(ann, "2", owner="ann")).ok
        assert (await begin(ann, "2")).ok
        assert (await begin(bob, "2")).code == "task.claimed"
        assert (await begin(bob, "2", owner="bob")).code == "task.claimed"
        assert (await begin(bob, "2", owner="ann")).ok
        assert (await bob.call("TaskUpdate", taskId="2", description="more")).ok
        assert (await bob.call("TaskUpdate", taskId="2", status="pending", owner="")).ok
        assert (await begin(ann, "2")).ok


async def test_tasks_created_at_once_by_many_are_all_kept(tmp_path):
    from handaxe.storage.task_lists import DiskTaskList

    def create(number: int) -> None:
        asyncio.run(DiskTaskList(tmp_path / "tasks").create(f"T{number}", "t", None, {}))

    await asyncio.gather(*(asyncio.to_thread(create, number) for number in range(20)))
    tasks = await DiskTaskList(tmp_path / "tasks").all()
    assert [task.id for task in tasks] == [str(number) for number in range(1, 21)]
    assert len({task.subject for task in tasks}) == 20


async def test_a_task_list_that_is_no_json_is_named_not_overwritten(tmp_path):
    async with Session(tmp_path, home=tmp_path / "home", settings={"task_list": "x"}) as session:
        await session.call("TaskCreate", subject="A", description="a")
        file = tmp_path / "home" / "tasks" / "x" / "tasks.json"
        file.write_text("{broken")
        result = await session.call("TaskCreate", subject="B", description="b")
    assert result.code == "task.list_broken"
    assert file.read_text() == "{broken"


async def test_data_is_plain_for_hosts_of_the_library_too(tmp_path):
    async with Session(tmp_path, home=tmp_path / "home") as session:
        await session.call("TaskCreate", subject="A", description="a")
        for result in (
            await session.call("TodoWrite", todos=[TODO]),
            await session.call("TaskList"),
            await session.call("TaskGet", taskId="1"),
            await session.call("Config"),
        ):
            assert result.ok, result.text
            assert msgspec.to_builtins(result.data) == result.data
        assert (await session.call("TodoWrite", todos=[])).data["oldTodos"][0]["content"] == "Run"


async def test_a_plan_may_be_what_was_said_before(tmp_path):
    async def yes(_):
        return Allow()

    async with Session(tmp_path, home=tmp_path / "home", on_ask=yes) as session:
        await session.call("EnterPlanMode")
        done = await session.call("ExitPlanMode")
        assert done.ok, done.text
        assert done.data == {"plan": None, "isAgent": False, "filePath": None}
        assert session.permissions.mode == "default"


@pytest.mark.proves("BT-13")
async def test_a_host_gets_what_is_open_and_nothing_that_is_done(project):
    async with Session(project) as session:
        assert await open_tasks(session) == ""
        for subject in ("First", "Second", "Third"):
            await session.call("TaskCreate", subject=subject, description="d")
        await session.call("TaskUpdate", taskId="1", status="completed")
        await session.call("TaskUpdate", taskId="3", addBlockedBy=["1", "2"], owner="bob")
        todos = [
            {"content": "Write", "status": "completed", "activeForm": "Writing"},
            {"content": "Test", "status": "in_progress", "activeForm": "Testing"},
        ]
        await session.call("TodoWrite", todos=todos)
    async with Session(project, session_id=session.id) as again:
        assert await open_tasks(again) == (
            "Your todo list:\n- [in_progress] Test\n\n"
            "The shared task list:\n- #2 [pending] Second\n- #3 [pending] Third (bob) [waits for #2]"
        )
