"""Which of Edit, MultiEdit, ApplyPatch and EditLines is shown; all of them can be called."""

import pytest

from handaxe import Session, SetupError
from handaxe.catalog.edit_formats import EDIT_TOOLS, choose_edit_tool, load_profiles
from handaxe.config.settings import EditOptions
from handaxe.text.line_tags import make_line_ref

FORMATS = {"Edit", "MultiEdit", "ApplyPatch", "EditLines"}


def shown(session: Session) -> set[str]:
    return {tool["name"] for tool in session.tools()} & FORMATS


@pytest.mark.proves("RG-7")
@pytest.mark.parametrize(
    ("model", "tool"),
    [
        (None, "Edit"),
        ("", "Edit"),
        ("claude-opus-4-5", "Edit"),
        ("anthropic/claude-sonnet-4-5", "Edit"),
        ("gpt-5.1", "ApplyPatch"),
        ("GPT-4.1-mini", "ApplyPatch"),
        ("openai/gpt-5", "ApplyPatch"),
        ("some/gateway/gpt-oss-120b", "ApplyPatch"),
        ("codex-mini-latest", "ApplyPatch"),
        ("o3", "ApplyPatch"),
        ("o4-mini", "ApplyPatch"),
        ("openai/qwen3-coder", "Edit"),
        ("olmo-3", "Edit"),
        ("o365", "Edit"),
        ("gemini-3-pro", "Edit"),
        ("my-gpt-5", "Edit"),
        ("llama", "Edit"),
    ],
)
def test_the_models_name_picks_the_format_it_was_trained_on(model, tool):
    assert choose_edit_tool(EditOptions(), model) == tool
    for name, named in EDIT_TOOLS.items():
        assert choose_edit_tool(EditOptions(format=name), model) == named


def test_every_entry_of_the_table_says_why_it_is_there():
    assert load_profiles()
    assert all(
        profile.source.startswith(("measured: ", "documented ")) for profile in load_profiles()
    )


@pytest.mark.proves("RG-7")
def test_own_entries_come_before_the_table():
    own = EditOptions(formats={"Qwen3-*": "lines", "gpt-5*": "multi", "llama": "patch"})
    assert choose_edit_tool(own, "openai/qwen3-coder") == "EditLines"
    assert choose_edit_tool(own, "gpt-5.1") == "MultiEdit"
    assert choose_edit_tool(own, "gpt-4.1") == "ApplyPatch"
    assert choose_edit_tool(own, "llama") == "ApplyPatch"
    assert choose_edit_tool(own, "claude-opus-4-5") == "Edit"
    assert choose_edit_tool(own) == "Edit"
    assert choose_edit_tool(EditOptions(format="replace", formats={"*": "lines"}), "x") == "Edit"


@pytest.mark.proves("RG-7")
@pytest.mark.parametrize(
    ("setting", "name"),
    [("auto", "Edit"), *EDIT_TOOLS.items()],
)
@pytest.mark.parametrize("tools", [None, "edit", "full", "Read,Edit", ["Read", "Edit", "Bash"]])
async def test_one_is_shown_and_every_one_can_be_called(project, setting, name, tools):
    (project / "a.txt").write_text("one\n")
    settings = {"edit": {"format": setting}}
    async with Session(
        project, tools=tools, settings=settings, permission_mode="acceptEdits"
    ) as session:
        assert shown(session) == {name}
        await session.call("Read", file_path="a.txt")
        calls = [
            ("Edit", {"file_path": "a.txt", "old_string": "one", "new_string": "2"}),
            ("MultiEdit", {"file_path": "a.txt", "edits": [{"old_string": "2", "new_string": "3"}]}),
            ("ApplyPatch", {"input": "*** Begin Patch\n*** Update File: a.txt\n-3\n+4\n*** End Patch"}),
            ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.txt\n-4\n+5\n*** End Patch"}),
        ]  # fmt: skip
        change = {"first": str(make_line_ref(1, "5")), "text": "6"}
        calls.append(("EditLines", {"file_path": "a.txt", "changes": [change]}))
        for tool, call_input in calls:
            result = await session.call(tool, **call_input)
            assert result.ok, result.text
    assert (project / "a.txt").read_text() == "6\n"


async def test_a_format_that_is_named_alone_is_the_only_one(project):
    async with Session(project, tools="Read,MultiEdit") as session:
        assert shown(session) == {"MultiEdit"}
        assert (await session.call("Edit", file_path="a", old_string="a", new_string="b")).code == (
            "call.unknown_tool"
        )
    async with Session(project, tools="read-only") as session:
        assert shown(session) == set()
        for name in FORMATS:
            assert (await session.call(name)).code == "call.unknown_tool"


def test_an_unknown_format_is_a_setup_error(project):
    with pytest.raises(SetupError, match="format"):
        Session(project, settings={"edit": {"format": "xml"}})
    with pytest.raises(SetupError, match="formats"):
        Session(project, settings={"edit": {"formats": {"gpt-*": "xml"}}})
