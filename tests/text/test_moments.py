"""A call looks the same in every front end, from its first letters to its end."""

import msgspec
import pytest

from handaxe import Deny, ToolResult
from handaxe.contract.display import Block, Items, Text
from handaxe.frontends.cli.repl import renderer as moments
from handaxe.tools import BUILTIN, build_loaders

REFUSED = ToolResult(
    "not today", ok=False, code="permission.denied", decision=Deny("no", by="rule", rule="Edit")
)
FAILED = ToolResult("File does not exist.", ok=False, code="file.not_found")


@pytest.mark.proves("TC-10")
def test_every_moment_of_a_call_has_its_blocks():
    assert moments.render_queued("Read(a)") == (Text("Read(a) (waiting)", "muted"),)
    assert moments.render_progress("Read(a)", "half") == (Text("Read(a)"), Text("half", "muted"))
    assert (
        moments.render_unsuccessful("Edit(a)", REFUSED)[0].text == "Edit(a) was not run (rule Edit)"
    )
    assert (
        moments.render_unsuccessful("Read(a)", FAILED)[0].text == "Read(a) failed (file.not_found)"
    )
    assert moments.render_summary("Read(a)", "2 lines") == (Text("Read(a): 2 lines"),)


@pytest.mark.proves("TC-10")
def test_parallel_calls_are_shown_as_one_group():
    shown = moments.render_group(["Read(a)", "Read(b)", "Read(c)"], [ToolResult("x"), FAILED, None])
    assert shown == (Text("2 of 3 calls done"), Items(("✓ Read(a)", "✗ Read(b)", "… Read(c)")))


@pytest.mark.proves("TC-10")
@pytest.mark.parametrize("name", BUILTIN)
def test_every_tool_has_a_title_while_its_input_still_streams_in(name):
    tool = build_loaders()[name]()
    for partial in ({}, {"file_path": "/a"}, {"file_path": 5}, {"unknown": None}):
        assert tool.title(partial).startswith(name)


def test_blocks_survive_the_wire():
    blocks = moments.render_group(["Read(a)"], [FAILED])
    assert msgspec.json.decode(msgspec.json.encode(blocks), type=tuple[Block, ...]) == blocks
