"""One analysis per command: who reads command texts, and what the facts are made of."""

import ast
from functools import cache
from pathlib import Path

import handaxe

SOURCE = Path(handaxe.__file__).parent
PARSER = (
    "handaxe.shell.analysis.parser.parse",
    "handaxe.shell.analysis.parser.simple_commands",
    "handaxe.shell.analysis.parser.compound_commands",
    "handaxe.shell.analysis.parser.words",
)
VERDICTS = (
    "effects/path_rules", "effects/glob_overlap", "effects/worktree_escape", "decision/decide",
    "decision/part_decision", "decision/suggestions", "decision/rule_match", "decision/verdicts",
)  # fmt: skip
SYNTAX = (
    "handaxe.shell.analysis.parser.syntax",
    "handaxe.shell.analysis.walker",
    "handaxe.shell.analysis.programs.read_only",
    *PARSER,
)


@cache
def imports_of(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{name.name}" for name in node.names)}
        elif isinstance(node, ast.Import):
            found |= {name.name for name in node.names}
    return found


def test_one_module_reads_command_texts():
    readers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "handaxe.shell.analysis.parser.parse" in imports_of(path)
    }
    assert readers == {"shell/analysis/analyzer.py"}


def test_the_modules_of_the_parser_are_used_by_the_parser_only():
    own = {"parse", "simple_commands", "compound_commands", "words"}
    users = {
        path.stem
        for path in SOURCE.rglob("*.py")
        if any(name in imports_of(path) for name in PARSER[1:])
    }
    assert users <= own


def test_verdicts_read_facts_and_no_syntax():
    for name in VERDICTS:
        used = imports_of(SOURCE / "shell/analysis" / f"{name}.py") & set(SYNTAX)
        assert used == set(), name


def test_facts_are_plain_data():
    tree = ast.parse((SOURCE / "shell/analysis/facts.py").read_text("utf-8"))
    functions = [node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert functions == []
    assert "Callable" not in (SOURCE / "shell/analysis/facts.py").read_text("utf-8")


def test_nobody_else_asks_the_analysis_in_the_runtime_of_a_call():
    """A call's facts are made in one place; the pipeline and explain get them from there."""
    users = {
        path.relative_to(SOURCE).as_posix()
        for package in ("catalog", "hooks", "permission", "pipeline", "rules")
        for path in (SOURCE / package).rglob("*.py")
        if {"handaxe.shell.analysis.analyze", "handaxe.shell.analysis.analyzer"} & imports_of(path)
    }
    assert users == {"permission/shell_commands.py"}
