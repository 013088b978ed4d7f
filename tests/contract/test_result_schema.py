"""Every result is what its published schema says."""

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from PIL import Image

from handaxe import Deny, Session, result_schema

SCHEMA = Path(__file__).parents[2] / "docs" / "reference" / "result.schema.json"
VALIDATOR = jsonschema.Draft202012Validator(result_schema())
CALLS = [
    ("Read", {"file_path": "a.txt", "limit": "1"}, None),
    ("Read", {"file_path": "p.png"}, None),
    ("Read", {"file_path": "missing"}, "file.not_found"),
    ("Read", {"path": 3}, "call.bad_input"),
    ("Nope", {}, "call.unknown_tool"),
    ("Glob", {"pattern": "*"}, None),
    ("Grep", {"pattern": "("}, "search.bad_pattern"),
    ("Edit", {"file_path": "b.md", "old_string": "zzz", "new_string": "y"}, "file.not_found"),
    ("Write", {"file_path": "b.txt", "content": "x"}, "permission.denied"),
    ("Bash", {"command": "ls; rm -rf build"}, "permission.denied"),
    ("Bash", {"command": "ls | wc -l"}, None),
    ("Bash", {"command": "cat missing"}, "shell.failed"),
    ("TodoWrite", {"todos": []}, None),
]


async def no(_request):
    return Deny("not now")


def test_the_published_schema_is_sound():
    jsonschema.Draft202012Validator.check_schema(result_schema())
    assert json.loads(SCHEMA.read_text()) == result_schema()


@pytest.mark.proves("TC-6")
async def test_every_result_fits_the_schema(project):
    (project / "a.txt").write_text("one\ntwo\n")
    Image.new("RGB", (4, 4)).save(project / "p.png")
    async with Session(project, on_ask=no) as session:
        for tool, given, code in CALLS:
            result = await session.call(tool, given)
            assert result.code == code, result.text
            VALIDATOR.validate(json.loads(json.dumps(result.to_json())))


def test_results_of_the_command_line_fit_it_too(project):
    lines = [
        '{"tool": "Glob", "input": {"pattern": "*"}}',
        "no call",
        '{"tool": "Read", "input": 5}',
    ]
    ran = subprocess.run(
        [sys.executable, "-m", "handaxe", "run", "-"],
        input="\n".join(lines), capture_output=True, text=True, check=False, cwd=project,
    )  # fmt: skip
    results = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [result["code"] for result in results] == [None, "call.bad_line", "call.bad_input"]
    for result in results:
        VALIDATOR.validate(result)


@pytest.mark.parametrize(
    "change",
    [{"ok": False}, {"code": "file.not_found"}, {"code": "oops"}, {"tokens": -1}, {"text": 5}],
)
async def test_what_is_no_result_does_not_fit(project, change):
    async with Session(project) as session:
        result = (await session.call("Glob", pattern="*")).to_json()
    VALIDATOR.validate(result)
    assert not VALIDATOR.is_valid({**result, **change})
