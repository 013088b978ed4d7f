"""An agent with a model that is opened by its name."""

from pathlib import Path

from handaxe import Agent, Session


async def test_a_model_can_be_named(project: Path, tmp_path: Path):
    (project / "a.txt").write_text("one\n")
    script = tmp_path / "turns.toml"
    script.write_text(
        "[[turn]]\n"
        'text = "Let me look."\n'
        'call = [{ tool = "Read", input = { file_path = "a.txt" } }]\n'
        "[[turn]]\n"
        'text = "It says one."\n'
    )
    async with Agent(f"scripted:{script}", root=project) as agent:
        final = await agent.ask("What does it say?")
    assert final.result == "It says one."
    assert final.turns == 1


async def test_the_model_of_the_settings_is_used_where_none_is_named(project: Path, tmp_path: Path):
    script = tmp_path / "turns.toml"
    script.write_text('[[turn]]\ntext = "Hello."\n')
    async with Session(project, settings={"model": f"scripted:{script}"}) as session:
        assert (await Agent(session=session).ask("Hi.")).result == "Hello."
