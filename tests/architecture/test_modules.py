"""What every module, tool and fault has, and what starting costs."""

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from string import Formatter

import pytest
from tests.architecture.sources import MODULES, SOURCE, parse, shorten

import handaxe
from handaxe.contract.faults import TemplateFault, ToolFault
from handaxe.testing.conformance import problems_of
from handaxe.tools import BUILTIN, build_loaders

MAY_LOAD_AT_START = {"msgspec", "handaxe"}
SUPPRESSION_BUDGET = 20
A_READ_MAY_LOAD = ("argparse", "asyncio", "gc", "hashlib", "locale", "msgspec", "pathlib", "queue")
A_READ_LOADS_NONE_OF = (
    "handaxe.agent", "handaxe.app.services.mcp", "handaxe.app.services.session_shell",
    "handaxe.config.mcp_definitions", "handaxe.config.settings_store", "handaxe.config.trust_store",
    "handaxe.contract.ports.mcp_servers", "handaxe.contract.ports.questions",
    "handaxe.contract.ports.search", "handaxe.disk.atomic", "handaxe.frontends.cli.terminal_prompts",
    "handaxe.hooks.dispatcher", "handaxe.mcp", "handaxe.media", "handaxe.models", "handaxe.search",
    "handaxe.shell.analysis", "handaxe.skills.skill_files", "handaxe.storage.task_lists",
    "handaxe.undo.checkpoints", "handaxe.undo.content_store", "handaxe.undo.history",
    "handaxe.undo.journal", "handaxe.undo.snapshot",
)  # fmt: skip
"""What other calls need."""
MODULE_BUDGET_OF_A_READ = 160


def test_every_module_says_what_it_is():
    assert not [shorten(path) for path in MODULES if not ast.get_docstring(parse(path))]


def test_every_package_says_what_belongs_there():
    heads = {
        shorten(path): ast.get_docstring(parse(path)) or ""
        for path in MODULES
        if path.name == "__init__.py" and len(path.relative_to(SOURCE).parts) == 2
    }
    promises = ("Belongs here:", "Does not:", "May import:")
    assert not [name for name, doc in heads.items() if not all(one in doc for one in promises)]


def test_the_table_of_tools_is_sorted_and_names_what_it_loads():
    assert list(BUILTIN) == sorted(BUILTIN)
    for name, load in build_loaders().items():
        assert load().name == name


def test_every_tool_module_is_in_the_table():
    prompts = set((SOURCE / "tools").rglob("*.md"))
    listed = set(BUILTIN.values())
    for prompt in prompts:
        parts = prompt.relative_to(SOURCE).with_suffix("").parts
        module = ".".join(("handaxe", *(parts[:-1] if parts[-1] == "prompt" else parts)))
        assert module in listed, f"{prompt} has no tool in the table"


@pytest.mark.proves("TC-1", "TC-2")
@pytest.mark.parametrize("name", BUILTIN)
def test_every_built_in_tool_keeps_the_contract(name: str):
    assert problems_of(build_loaders()[name](), calls=False) == []


def all_faults() -> list[type[ToolFault]]:
    for module in MODULES:
        if module.stem == "faults" or module.parent.name == "faults":
            __import__(
                ".".join(
                    ("handaxe", *module.relative_to(SOURCE).with_suffix("").parts)
                ).removesuffix(".__init__")
            )
    found: list[type[ToolFault]] = []
    waiting = [ToolFault]
    while waiting:
        for fault in waiting.pop().__subclasses__():
            if fault.__module__.startswith("handaxe."):
                waiting.append(fault)
                if fault is not TemplateFault:
                    found.append(fault)
    return found


def test_every_fault_has_a_stable_code_and_a_docstring():
    assert not [
        fault.__name__
        for fault in all_faults()
        if not re.fullmatch(r"[a-z]+\.[a-z_]+", fault.code) or not fault.__doc__
    ]


def _read_facts(fault: ast.ClassDef) -> set[str]:
    given = {keyword.arg: ast.literal_eval(keyword.value) for keyword in fault.keywords}
    placeholders = {name for _, name, _, _ in Formatter().parse(given["sentence"]) if name}
    return placeholders | set(given.get("data", {}).values())


def test_every_fault_with_a_template_is_raised_with_exactly_its_facts():
    nodes = [(module, node) for module in MODULES for node in ast.walk(parse(module))]
    facts = {
        node.name: _read_facts(node)
        for _, node in nodes
        if isinstance(node, ast.ClassDef)
        and any(keyword.arg == "sentence" for keyword in node.keywords)
    }
    assert facts
    for module, node in nodes:
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", None))
            if name in facts:
                given = {keyword.arg for keyword in node.keywords}
                assert not node.args, f"{module}:{node.lineno}"
                assert given == facts[name], f"{module}:{node.lineno}"


def test_public_names_are_the_ones_that_are_exported():
    assert sorted(handaxe.__all__) == list(handaxe.__all__)
    for name in handaxe.__all__:
        assert getattr(handaxe, name) is not None


PUBLIC_MODULES = (
    "handaxe", "handaxe.content", "handaxe.events", "handaxe.models", "handaxe.sessions",
    "handaxe.testing",
)  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_every_name_of_a_public_module_is_there_and_in_the_reference(name: str):
    module = import_module(name)
    reference = (SOURCE.parent.parent / "docs" / "reference" / "api.md").read_text()
    assert f"\n## {name}\n" in reference
    for public in module.__all__:
        assert getattr(module, public) is not None
        assert public in dir(module)
        assert re.search(rf"(^#+ |`){public}(`|$)", reference, re.MULTILINE), public
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = module.nothing


def test_the_content_of_results_is_there_without_a_session():
    code = "import sys, handaxe.content; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"asyncio", "handaxe.app", "handaxe.agent"} & set(out.stdout.split())


def test_importing_handaxe_loads_nothing_heavy():
    code = (
        "import sys; before = set(sys.modules); import handaxe; print(*set(sys.modules) - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in out.stdout.split()}
    third_party = {name for name in loaded if name not in sys.stdlib_module_names}
    assert third_party <= MAY_LOAD_AT_START
    assert "asyncio" not in loaded


def test_a_session_loads_no_third_party_module_but_msgspec():
    code = (
        "import sys; before = set(sys.modules); import handaxe; handaxe.Session; "
        "import handaxe.tools.files.read, handaxe.tools.files.edit; "
        "print(*set(sys.modules) - before)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in out.stdout.split()}
    # msgspec itself prefers typing_extensions where that happens to be installed.
    allowed = MAY_LOAD_AT_START | {"typing_extensions"}
    assert {n for n in loaded if n not in sys.stdlib_module_names} <= allowed


def test_a_read_on_the_command_line_loads_what_a_read_needs_and_nothing_else(tmp_path: Path):
    (tmp_path / "a.txt").write_text("hi\n")
    environment = {**os.environ, "HOME": str(tmp_path), "HANDAXE_HOME": str(tmp_path / "data")}
    environment.pop("CLAUDE_CONFIG_DIR", None)

    def loaded_by(code: str) -> set[str]:
        out = subprocess.run(
            [sys.executable, "-c", f"import sys; {code}; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=environment,
        )
        return set(out.stdout.splitlines()[-1].split())

    # msgspec prefers typing_extensions where that happens to be installed; the command does not.
    allowed = loaded_by(f"import {', '.join(A_READ_MAY_LOAD)}")
    loaded = loaded_by(
        "sys.argv[1:] = ['call', 'Read', 'file_path=a.txt']; "
        "from handaxe.__main__ import main; assert main() == 0"
    )
    own = {name for name in loaded if name.partition(".")[0] == "handaxe"}
    assert loaded - own <= allowed
    assert not {n for n in own if any(f"{n}.".startswith(f"{o}.") for o in A_READ_LOADS_NONE_OF)}
    assert len(own) <= MODULE_BUDGET_OF_A_READ


def test_suppressions_of_the_type_checker_are_few_and_named():
    found = [
        line
        for path in MODULES
        for line in path.read_text().splitlines()
        if "pyright: ignore" in line or "type: ignore" in line
    ]
    assert all(re.search(r"pyright: ignore\[\w+\]", line) for line in found)
    assert len(found) <= SUPPRESSION_BUDGET


def test_broad_excepts_are_marked_with_their_reason():
    for path in MODULES:
        for line in path.read_text().splitlines():
            if re.search(r"except (Base)?Exception\b", line) and "BLE001" not in line:
                # A broad handler that only cleans up has to raise again.
                assert "raise" in path.read_text(), path
