"""Whoever is asked may say yes to another input; everything is checked again for it."""

import pytest

from handaxe import Allow, Session


@pytest.fixture
def write(project):
    async def call(answer, **options):
        asked = []

        async def on_ask(request):
            asked.append(request.input)
            return answer

        async with Session(project, on_ask=on_ask, **options) as session:
            result = await session.call("Write", file_path="a.txt", content="mine")
        return result, asked

    return call


async def test_the_call_runs_with_the_changed_input(write, project):
    result, asked = await write(Allow(input={"file_path": "b.txt", "content": "theirs"}))
    assert result.ok
    assert (project / "b.txt").read_text() == "theirs"
    assert not (project / "a.txt").exists()
    assert len(asked) == 1
    assert result.decision.by == "callback"


async def test_the_same_input_changes_nothing(write, project):
    result, _ = await write(Allow(input={"file_path": "a.txt", "content": "mine"}))
    assert result.ok
    assert (project / "a.txt").read_text() == "mine"


async def test_a_deny_rule_holds_for_the_changed_input(write, project):
    changed = Allow(input={"file_path": "secret", "content": "x"})
    result, _ = await write(changed, deny=["Edit(/secret)"])
    assert result.code == "permission.denied"
    assert not (project / "secret").exists()


async def test_an_ask_rule_is_answered_once(write, project):
    changed = Allow(input={"file_path": "b.txt", "content": "x"})
    result, asked = await write(changed, ask=["Write"])
    assert result.ok
    assert len(asked) == 1


async def test_a_changed_input_that_does_not_fit_is_a_fault(write):
    result, _ = await write(Allow(input={"file": 3}))
    assert result.code == "call.bad_input"
