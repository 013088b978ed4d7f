"""Every promise is proved by a test or stands in the list as a named gap, and the other way."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
REQUIREMENTS = tomllib.loads((TESTS / "requirements.toml").read_text())


def proved_by_tests() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.proves":
                for argument in node.args:
                    found.setdefault(ast.literal_eval(argument), []).append(str(path))
    return found


def proved_by_scenarios() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in (TESTS / "scenarios").glob("*/*.toml"):
        for proved in tomllib.loads(path.read_text())["proves"]:
            found.setdefault(proved, []).append(str(path))
    return found


PROVED = proved_by_tests() | proved_by_scenarios()


@pytest.mark.parametrize("requirement", REQUIREMENTS)
def test_every_requirement_is_proved_or_a_named_gap(requirement: str):
    entry = REQUIREMENTS[requirement]
    assert entry["promise"]
    if requirement in PROVED:
        assert "gap" not in entry, f"{requirement} is proved; take its gap out"
    else:
        assert entry.get("gap"), f"{requirement} is neither proved nor a gap"


@pytest.mark.parametrize("proved", sorted(PROVED))
def test_everything_proved_is_a_requirement(proved: str):
    assert proved in REQUIREMENTS


def test_requirement_ids_have_one_form():
    assert all(re.fullmatch(r"[A-Z]{2}-\d+|[CPRS]\d+", name) for name in REQUIREMENTS)
