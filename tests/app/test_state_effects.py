"""A tool of one's own that changes named state: the session's own is free, any other is not."""

import re
from pathlib import Path

import pytest

import handaxe
from handaxe import Session
from handaxe.contract import Effects
from handaxe.contract.effects import SESSION_STATE, Resource

ROOT = Path(__file__).parents[2]
OUTSIDE = ("database", "Todos", "todos ", "", "cache", "the mode")


def own_tools(effects):
    """One tool for each, with a path and without one, and the list of those that ran."""
    ran: list[str] = []

    def make(index, one):
        async def change_it() -> str:
            """Change something."""
            ran.append(f"change_{index}")
            return "changed"

        async def change_by(file_path: str) -> str:
            """Change something by a file."""
            ran.append(f"change_by_{index}")
            return file_path

        change_it.__name__, change_by.__name__ = f"change_{index}", f"change_by_{index}"
        return handaxe.tool(effects=one)(change_it), handaxe.tool(effects=one)(change_by)

    return [made for index, one in enumerate(effects) for made in make(index, one)], ran


async def codes_in(mode, effects, project):
    """The codes of one call of each tool, and what ran."""
    (project / "a.txt").write_text("x")
    tools, ran = own_tools(effects)
    async with Session(project, permission_mode=mode, tools=tools) as session:
        given = [{"file_path": "a.txt"} if "by" in tool.name else {} for tool in tools]
        results = [await session.call(t.name, g) for t, g in zip(tools, given, strict=True)]
    return [result.code for result in results], ran


@pytest.mark.proves("TC-2")
async def test_a_tool_that_changes_state_of_an_unknown_name_is_refused_in_plan_mode(project):
    built = [Effects(writes=(Resource("state", name),)) for name in OUTSIDE]
    effects = [*map(Effects.on_state, OUTSIDE), *built, Effects.on_state("todos", "database")]
    codes, ran = await codes_in("plan", effects, project)
    assert (set(codes), ran) == ({"permission.asked"}, [])


@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
async def test_a_tool_that_changes_state_of_an_unknown_name_asks_otherwise(mode, project):
    codes, ran = await codes_in(mode, [*map(Effects.on_state, OUTSIDE)], project)
    assert (set(codes), ran) == ({"permission.asked"}, [])


async def test_a_tool_that_changes_state_of_the_session_is_free_in_plan_mode(project):
    effects = [*map(Effects.on_state, sorted(SESSION_STATE))]
    codes, ran = await codes_in("plan", effects, project)
    # The other half has a path and might write there.
    assert codes[::2] == [None] * len(effects)
    assert len(ran) == len(effects)


def test_state_of_an_unknown_name_may_not_be_internal_nor_undone():
    outside = Effects.on_state("database")
    assert not outside.is_internal
    assert outside.is_destructive
    assert outside.collides(Effects.reading("/a"))
    assert Effects(reads=(Resource("state", "database"),)).is_internal


def test_every_name_of_state_in_the_sources_is_known():
    used = set()
    for file in (ROOT / "src").rglob("*.py"):
        text = file.read_text("utf-8")
        used |= set(re.findall(r'on_state\("([^"]+)"\)|Resource\("state", "([^"]+)"\)', text))
    assert {one or other for one, other in used} == SESSION_STATE


def test_the_guide_lists_every_name():
    guide = (ROOT / "docs/guides/own-tools.md").read_text("utf-8")
    for name in SESSION_STATE:
        assert f"`{name}`" in guide
