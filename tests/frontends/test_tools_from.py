"""Own tools on the command line: from files, modules and installed packages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from handaxe import SetupError
from handaxe.app.services.tool_files import load_tools

pytestmark = pytest.mark.proves("RG-9")

TOOLS = '''
from neighbour import WORD
from handaxe import Effects, Tool, ToolArgs, ToolContext, ToolResult, tool

print("loading")


@tool(effects=Effects.pure())
async def add(a: int, b: int = 1) -> str:
    """Add two whole numbers."""
    return str(a + b)


class Base(Tool[ToolArgs]):
    """No tool itself."""


class Greet(Base):
    """Greet whoever is there."""

    effects = Effects.pure()

    async def call(self, args: ToolArgs, ctx: ToolContext) -> ToolResult:
        return ToolResult(WORD)
'''


@pytest.fixture
def tools_file(tmp_path: Path) -> Path:
    directory = tmp_path / "own"
    directory.mkdir()
    (directory / "neighbour.py").write_text('WORD = "good morning"\n')
    (directory / "my_tools.py").write_text(TOOLS)
    return directory / "my_tools.py"


def handaxe(*arguments: str | Path, cwd: Path, stdin: str = "", **env: str):
    return subprocess.run(
        [sys.executable, "-m", "handaxe", *map(str, arguments)],
        cwd=cwd,
        env={**os.environ, **env},
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_a_call_finds_the_tools_of_a_file_and_keeps_its_output_apart(project, tools_file):
    done = handaxe("call", "add", "a=2", "--tools-from", tools_file, cwd=project)
    assert (done.returncode, done.stdout) == (0, "3\n"), done.stderr
    assert "loading" in done.stderr
    assert handaxe("call", "add", "a=2", cwd=project).returncode == 1


def test_own_tools_stand_beside_the_built_in_ones_that_are_named(project, tools_file):
    words = ("--tools-from", tools_file, "--tools", "Read,add")
    shown = json.loads(handaxe("tools", "--json", *words, cwd=project).stdout)
    assert [tool["name"] for tool in shown] == ["Read", "Greet", "add"]


def test_run_and_mcp_offer_them(project, tools_file):
    line = json.dumps({"id": "1", "tool": "Greet", "input": {}})
    done = handaxe("run", "--tools-from", tools_file, cwd=project, stdin=line + "\n")
    assert json.loads(done.stdout)["text"] == "good morning", done.stderr
    asked = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
        {"id": 3, "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
    ]
    lines = "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in asked)
    done = handaxe("mcp", "--tools-from", tools_file, cwd=project, stdin=lines)
    answers = {one["id"]: one["result"] for one in map(json.loads, done.stdout.splitlines())}
    names = [tool["name"] for tool in answers[2]["tools"]]
    assert {"Read", "Greet", "add"} <= set(names)
    assert answers[3]["content"][0]["text"] == "2"


@pytest.mark.parametrize("form", ["text", "stream-json"])
def test_an_agent_is_shown_them(project, tools_file, script, form):
    model = script({"call": [{"tool": "add", "input": {"a": 40, "b": 2}}]}, {"text": "done"})
    extra = ("--verbose",) if form == "stream-json" else ()
    done = handaxe(
        "-p", "x", "--model", model, "--output-format", form, *extra,
        "--tools-from", tools_file, cwd=project,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    if form == "stream-json":
        first = next(
            message
            for message in map(json.loads, done.stdout.splitlines())
            if message.get("subtype") == "init"
        )
        assert {"add", "Greet"} <= set(first["tools"])
        assert '"42"' in done.stdout


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x = 1\n", "has no tools. Decorate an async function"),
        ("x = 1\nboom()\n", "(line 2): NameError: name 'boom' is not defined."),
        ("def (\n", "(line 1): SyntaxError"),
        ("import sys\nsys.exit(3)\n", "cannot be loaded (line 2): SystemExit: 3."),
        ("from handaxe import tool\n@tool\ndef f(): ...\n", "is not async"),
        ("__all__ = 5\n", "is a list of names, not 5."),
        ("__all__ = [5]\n", "is a list of names, not [5]."),
        ("__all__ = 'x'\n", "is a list of names, not 'x'."),
        ("__all__ = ['add']\n", "has undefined names: add."),
        (None, "there is no such file."),
    ],
)
def test_a_file_that_gives_no_tools_is_refused_in_one_sentence(tmp_path, content, sentence):
    file = tmp_path / "bad.py"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SetupError) as caught:
        load_tools(str(file))
    assert sentence in str(caught.value)


def test_a_bad_file_ends_the_command(project, tmp_path):
    file = tmp_path / "bad.py"
    file.write_text("boom()\n")
    done = handaxe("call", "Glob", "pattern=*", "--tools-from", file, cwd=project)
    assert done.returncode == 2
    assert "(line 1): NameError: name 'boom' is not defined." in done.stderr
    assert "Traceback" not in done.stderr


def test_a_module_is_named_with_or_without_one_of_its_values(project, tools_file):
    path = {"PYTHONPATH": str(tools_file.parent)}
    done = handaxe("call", "add", "a=1", "--tools-from", "my_tools:add", cwd=project, **path)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


def test_what_a_name_stands_for_is_told(tools_file, monkeypatch):
    monkeypatch.syspath_prepend(str(tools_file.parent))
    assert [tool.name for tool in load_tools("my_tools:Greet")] == ["Greet"]
    assert [tool.name for tool in load_tools("my_tools")] == ["add", "Greet"]
    for name, sentence in {
        "my_tools:none": "my_tools has no 'none'",
        "my_tools:WORD": "'good morning' is not a tool",
        "no/such": "neither a Python file nor module:name",
        "no_such": "ModuleNotFoundError",
    }.items():
        with pytest.raises(SetupError, match=sentence):
            load_tools(name)


def test_installed_packages_bring_tools_and_a_broken_one_is_a_warning(
    project, tools_file, tmp_path
):
    site = tmp_path / "lib" / "site-packages"
    info = site / "ours-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n")
    points = "[handaxe.tools]\nadd = my_tools:add\nbad = no_such_module\n"
    (info / "entry_points.txt").write_text(points)
    path = {"PYTHONPATH": os.pathsep.join([str(site), str(tools_file.parent)])}
    done = handaxe("call", "add", "a=1", cwd=project, **path)
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    assert "Tools of the package ours are ignored: no_such_module cannot be loaded" in done.stderr
    done = handaxe("tools", "--tools", "Read", cwd=project, **path)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Read"]
    done = handaxe("-p", "--init-only", "--safe-mode", cwd=project, **path)
    assert (done.returncode, done.stderr) == (0, "")
    done = handaxe("tools", "--tools", "Read,add", cwd=project, **path)
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["Read", "add"]


def test_a_project_cannot_pose_as_an_installed_package(project, tools_file):
    info = project / "evil-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[handaxe.tools]\nevil = evil\n")
    (project / "evil.py").write_text("print('loaded')\n")
    done = handaxe("tools", cwd=project)
    assert done.returncode == 0
    assert "loaded" not in done.stderr
