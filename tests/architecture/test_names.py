"""Names: established words, verbs for functions, one meaning for a class name."""

import ast
import re
from collections import defaultdict
from pathlib import Path

from tests.architecture.sources import FUNCTIONS, MODULES, SOURCE, list_public, parse, shorten

from handaxe.tools import BUILTIN

VERBS = set(Path(__file__).with_name("verbs.txt").read_text(encoding="utf-8").split())
PREFIXES = {"is", "has", "can", "from", "to"}
NOT_VERBS = {
    "cost_usd": "documented in the guide to models",
    "image_message": "exported by handaxe",
    "open_tasks": "exported by handaxe",
    "problems_of": "documented for authors of tools",
    "result_schema": "exported by handaxe",
    "tool": "the decorator that handaxe exports",
    "tools_for": "documented in the guide to agent frameworks",
}
JUNK = {
    "utils", "helpers", "common", "misc", "base", "core", "impl", "manager", "types", "constants",
}  # fmt: skip
METAPHORS_TEXT = """
    among around asking beginning book calling companion companions desk doubts dress errand
    examining explaining family fence fences findings following hall heard hearing housing kept
    kinds listening meant modern neighbour offer offering offers opening opinion patience places
    presence questioning recipe resuming room rooms rounds sandboxing seat seats seldom shelf
    shelves sieve signs sound speaking spelled splices stopping suggesting surroundings telling told
    traffic undoing voice voices wall walls warden wardens wish wishes wording
"""
METAPHORS = set(METAPHORS_TEXT.split())
DOCUMENTED_EVENTS = {"InstructionsHeard", "JobsTold", "Told", "WishRefused"}
"""Their names are in logs and in programs that listen."""
MAX_FOLDERS = 2


def split_words(name: str) -> list[str]:
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z0-9]+", name)]


def is_tool_or_command(path: Path) -> bool:
    """Whether a module is named after its tool or its command."""
    return path.with_suffix(".md").exists() or path.parent.name == "commands"


def test_no_module_is_a_junk_drawer():
    assert not [shorten(p) for p in MODULES if {p.stem, p.parent.name} & JUNK]


def test_public_functions_begin_with_a_verb():
    functions = [one for one in list_public() if isinstance(one.node, FUNCTIONS)]
    wrong = [one for one in functions if one.node.name.split("_")[0] not in VERBS | PREFIXES]
    assert not [str(one) for one in wrong if one.node.name not in NOT_VERBS]
    assert len(wrong) <= 0.03 * len(functions)


def test_a_public_class_name_means_one_class():
    found: dict[str, list[str]] = defaultdict(list)
    for one in list_public():
        if isinstance(one.node, ast.ClassDef) and one.node.name not in BUILTIN:
            found[one.node.name].append(shorten(one.module))
    assert not {name: places for name, places in found.items() if len(places) > 1}


def test_a_module_name_is_in_two_folders_at_most():
    found: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        is_public = path.parent == SOURCE  # named after what it has of all packages
        if path.stem not in {"__init__", "__main__"} and not is_public | is_tool_or_command(path):
            found[path.stem].add(str(path.parent))
    assert not {stem: places for stem, places in found.items() if len(places) > MAX_FOLDERS}


def test_names_are_no_metaphors():
    modules = [
        shorten(path)
        for path in MODULES
        if set(split_words(path.stem)) & METAPHORS or path.parent.name in METAPHORS
    ]
    names = [
        str(one)
        for one in list_public()
        if set(split_words(one.node.name)) & METAPHORS and one.node.name not in DOCUMENTED_EVENTS
    ]
    assert not [*modules, *names]


def test_nothing_imports_the_root_package():
    wrong = [
        shorten(path)
        for path in MODULES
        for node in ast.walk(parse(path))
        if (isinstance(node, ast.ImportFrom) and node.module == "handaxe")
        or (isinstance(node, ast.Import) and "handaxe" in {alias.name for alias in node.names})
    ]
    assert not wrong
