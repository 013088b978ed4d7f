"""The script that measures edit formats: what it counts, with a server it talks to."""

import importlib.util
import json
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.models.serving import Reply, model_server, plain

from handaxe.models.factory import open_model
from handaxe.text.line_tags import make_line_ref

HOUSE = Path(__file__).parents[2]
TOOLS = {"replace": "Edit", "multi": "MultiEdit", "patch": "ApplyPatch", "lines": "EditLines"}


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr(sys, "path", [str(HOUSE / "corpus"), *sys.path])
    place = HOUSE / "bench" / "edit_formats.py"
    spec = importlib.util.spec_from_file_location("bench_edit_formats", place)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def called(name: str, call: dict[str, Any]) -> Reply:
    """A server's answer that asks for one call."""
    part = {"index": 0, "id": "c1", "function": {"name": name, "arguments": json.dumps(call)}}
    chunks = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [part]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 10}},
    ]
    return Reply(pieces=(plain(*chunks),))


def spoken(text: str) -> Reply:
    """A server's answer in words."""
    chunks = [
        {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 3}},
    ]
    return Reply(pieces=(plain(*chunks),))


@pytest.mark.proves("RG-7")
async def test_what_a_model_makes_of_a_task_is_counted_per_format(bench, monkeypatch):
    case = next(case for case in bench.tasks(400) if case["family"] == "space_files")
    monkeypatch.setattr(bench, "tasks", lambda _: [case])
    right = {name: bench.formats.sent(case, name) for name in TOOLS}
    old = bench.formats.lines_of(bench.formats.decoded(case["before"]))
    other = make_line_ref(len(old), old[-1])
    assert str(other) not in json.dumps(right["lines"])
    wrong = {**right["lines"], "changes": [{"after": str(other), "text": "elsewhere"}]}
    async with model_server(
        called("Edit", {**right["replace"], "old_string": "nowhere to be found"}),
        called("Edit", right["replace"]),
        called("MultiEdit", right["multi"]),
        spoken("I would rather not."),
        called("EditLines", wrong),
    ) as server:
        model = open_model("openai/some/model", env={"OPENAI_BASE_URL": f"{server.url}/v1"})
        rows, is_estimated = await bench.measure(model, 1, 2)
        await model.close()
    assert not is_estimated
    counted = {
        name: [row[key] for key in ("landed", "refused", "missed", "wrong_place")]
        for name, row in rows.items()
    }
    assert counted == {
        "replace": [1, 1, 0, 0], "multi": [1, 0, 0, 0], "patch": [0, 0, 1, 0],
        "lines": [0, 0, 0, 1],
    }  # fmt: skip
    assert (rows["replace"]["tokens_in"], rows["replace"]["tokens_out"]) == (200, 20)
    shown = [asked.body["tools"][0]["function"]["name"] for asked in server.asked]
    assert shown == ["Edit", "Edit", "MultiEdit", "ApplyPatch", "EditLines"]
    prompts = [asked.body["messages"][-1]["content"] for asked in server.asked]
    assert f"{make_line_ref(1, old[0])}→{old[0]}" in prompts[-1]
    assert f"     1→{old[0]}" in prompts[0]
    assert "String to replace not found" in str(server.asked[1].body["messages"][-1])
    printed = bench.as_toml(model.name, rows, is_estimated=False)
    [entry] = tomllib.loads(printed)["measured"]
    assert entry == {"model": "model", "formats": rows}
    assert bench.table.best(entry) is None
    assert "decides nothing" in bench.advice(model.name, rows)
    assert "wrong_place" in bench.as_table(rows)


@pytest.mark.proves("RG-7")
async def test_who_makes_no_mistake_lands_every_task_in_every_format(bench):
    rows, is_estimated = await bench.measure(bench.Perfect(), 5, 1)
    assert is_estimated
    assert {row["landed"] for row in rows.values()} == {5}
    enough = {name: {**row, "tasks": 20, "landed": 20} for name, row in rows.items()}
    assert '"formats": {"perfect": "' in bench.advice("perfect", enough)
