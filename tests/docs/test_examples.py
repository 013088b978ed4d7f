"""Every example in the documentation runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HOUSE = Path(__file__).parent.parent.parent
EXAMPLES = sorted((HOUSE / "docs" / "examples").glob("*.py"))
SAYS = {
    "agent_quick_start.py": "There is no such file.",
    "agent.py": "Read gave 1→hello\nsuccess - It says hello.",
    "deferred_tools.py": "Report 7 of 2025: all is well.",
    "approve_diff.py": "-one\n+two\na.txt changed",
    "later_answer.py": "w1 Written.",
    "own_tool.py": "rows=(('tea', '2'),)",
    "many_users.py": "change: undo.nothing\n     1→Ada's secret",
    "permission_callback.py": "script.sh: permission.denied",
    "plain_loop.py": "toolu_1 worked\ntoolu_2 failed\nx is 1 now.",
    "provider_schemas.py": '"is_error": true',
    "quick_start.py": "has been updated successfully",
    "sync_connect.py": "True file.not_found",
    "watch_events.py": "  3 of 3\ncount: done",
}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(example: Path, tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(example)],
        cwd=project,
        env={**os.environ, "HANDAXE_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.stderr == ""
    assert ran.returncode == 0
    assert SAYS[example.name] in ran.stdout


@pytest.mark.parametrize("name", ["quick_start.py", "agent_quick_start.py"])
def test_the_readme_shows_the_quick_starts_as_they_are(name: str):
    example = (HOUSE / "docs" / "examples" / name).read_text()
    assert f"```python\n{example}```" in (HOUSE / "README.md").read_text()


@pytest.mark.parametrize("name", ["quick_start.py", "agent_quick_start.py"])
def test_the_quick_starts_have_at_most_ten_lines_of_code(name: str):
    example = (HOUSE / "docs" / "examples" / name).read_text()
    assert len([line for line in example.splitlines() if line.strip()]) <= 10


@pytest.mark.parametrize("name", ["own_tool.py", "many_users.py", "plain_loop.py"])
def test_an_example_of_one_thing_needs_fewer_than_thirty_lines(name: str):
    example = (HOUSE / "docs" / "examples" / name).read_text()
    assert len(example.splitlines()) < 30


def test_the_code_of_the_guide_for_own_tools_works(tmp_path: Path):
    guide = (HOUSE / "docs" / "guides" / "own-tools.md").read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```", guide, re.DOTALL | re.MULTILINE))
    module = tmp_path / "own_tools.py"
    module.write_text(f"{code}\n\ntest_my_tool_keeps_the_contract()\n")
    ran = subprocess.run([sys.executable, module], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
