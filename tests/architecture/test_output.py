"""Text of others has one way to the model and one to a terminal; nobody goes round them."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from handaxe.text.framing import RUNTIME_TAGS

SOURCE = Path(__file__).parents[2] / "src/handaxe"
TAG = re.compile(rf"</?(?:{'|'.join(RUNTIME_TAGS)})\b")
MAY_WRITE = {
    "frontends/cli/render.py",  # the way out
    "frontends/stream_json/json_lines.py",  # JSON, escaped where a terminal reads it
    "frontends/cli/repl/markdown.py",  # rich paints what was shown before
}
STREAMS = re.compile(r"(?:sys\.)?(?:std(?:out|err))(?:\.buffer)?\.(?:write|writelines)")


def modules(below: str = "") -> Iterator[tuple[str, str]]:
    for path in sorted((SOURCE / below).rglob("*.py")):
        yield str(path.relative_to(SOURCE)), path.read_text()


def test_only_one_module_spells_the_runtimes_tags():
    found = {name for name, text in modules() if TAG.search(text)}
    assert found == {"text/framing.py"}


def test_the_command_line_writes_through_one_module():
    found: set[str] = set()
    for name, text in modules("frontends"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if called.split(".")[-1] == "print" or STREAMS.fullmatch(called):
                    found.add(name)
    assert found == MAY_WRITE


def test_what_is_written_exactly_is_known():
    found = {name for name, text in modules("frontends/cli") if re.search(r"\bwrite_raw\(", text)}
    # JSON, and what a hook has for the terminal after it was found harmless.
    assert found == {
        "frontends/cli/render.py",
        "frontends/cli/json_output.py",
        "frontends/cli/repl/renderer.py",
    }
