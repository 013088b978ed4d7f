"""Mutants of the command analysis against the product table: `scripts/check --long mutants`.

Mutants are made from the syntax of the analysis, not from texts written by hand: a condition is
negated, a check is skipped, an answer is turned, a function returns early, a list is emptied. Each is
planted in a copy of `src`; it is killed if a row of the table that was right becomes wrong. A mutant
counts if it changes some verdict: of a corpus that is not part of the table (the other suites of
tests/shell/analysis, random commands). Lines that no row executes and modules that only word sentences and
proposals get none.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import json
import os
import py_compile
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from grammar import Maker
from product_model import Row
from product_table import ask, check_row, choose_rows, make_rows

SOURCE = Path(__file__).parents[2] / "src" / "handaxe"
PACKAGES = ("shell", "rules", "permission")
NOT_ANALYSIS = {"exec", "sandbox"}
"""Folders of these packages that run commands instead of judging them."""
WORDING = re.compile(r"propos|reason|text|suggest|display|explain|saved|book|closed|prompt|famil")
"""Modules that word sentences and proposals or name other tools: no row depends on them."""
ORDER_SEED = 7
TURNED = {
    ast.In: "not in", ast.NotIn: "in", ast.Eq: "!=", ast.NotEq: "==", ast.Is: "is not",
    ast.IsNot: "is", ast.Lt: ">=", ast.GtE: "<", ast.Gt: "<=", ast.LtE: ">",
}  # fmt: skip
IDLE = 3
CPU_SECONDS = 300
"""Three times what a worker needs that comes to an end; waiting does not count."""
CORPUS_RULES = (
    {},
    {"rules": {"allow": ["Bash"], "deny": ["Bash(rm:*)", "Edit(/src/**)", "Read(secret.txt)"]}},
    {"mode": "acceptEdits"},
    {
        "rules": {
            "allow": ["Bash(git:*)", "Bash(echo:*)", "Bash(x:*)", "Bash(cp:*)", "Bash(find:*)"]
        }
    },
    {"rules": {"allow": ["Bash"], "ask": ["Bash(curl:*)"]}},
    {"rules": {"allow": ["Bash"]}, "mode": "dontAsk"},
    {"mode": "plan", "rules": {"allow": ["Bash"]}},
)
EMPTY = {"tuple": "()", "list": "[]", "dict": "{}", "set": "set()", "frozenset": "frozenset()"}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit of one file."""

    path: str
    start: int
    end: int
    old: str
    new: str
    kind: str
    function: str
    """The function, or the name of the module's list."""
    line: int

    def apply(self, source: str) -> str:
        """The source with the edit; the old text must stand where it was found."""
        if source[self.start : self.end] != self.old:
            raise AssertionError(f"{self.path}:{self.line} does not hold {self.old!r}")
        return source[: self.start] + self.new + source[self.end :]

    def __str__(self) -> str:
        old, new = " ".join(self.old.split())[:60], " ".join(self.new.split())[:60]
        return f"{self.path}:{self.line} {self.function}: {self.kind}: `{old}` -> `{new}`"


class Finder(ast.NodeVisitor):
    """Collects the possible mutants of a module."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source = path, source
        lines = source.splitlines(keepends=True)
        self.starts = [0]
        for line in lines:
            self.starts.append(self.starts[-1] + len(line))
        self.lines = lines
        self.scope: list[str] = []
        self.found: list[Mutant] = []

    def _offset(self, line: int, column: int) -> int:
        # Columns of the syntax tree count bytes.
        text = self.lines[line - 1].encode()[:column].decode()
        return self.starts[line - 1] + len(text)

    def _add(self, node, new: str, kind: str) -> None:
        start = self._offset(node.lineno, node.col_offset)
        end = self._offset(node.end_lineno, node.end_col_offset)
        name = ".".join(self.scope)
        old = self.source[start:end]
        if old != new:
            self.found.append(Mutant(self.path, start, end, old, new, kind, name, node.lineno))

    def _text(self, node) -> str:
        return ast.get_source_segment(self.source, node) or ""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.scope.append(node.name)
        self._return_early(node)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for statement in node.body:
            if isinstance(statement, ast.FunctionDef):
                self.visit(statement)
        self.scope.pop()

    def _return_early(self, node: ast.FunctionDef) -> None:
        says = self._text(node.returns) if node.returns else ""
        value = {"bool": "True", "None": ""}.get(says)
        if "| None" in says:
            value = "None"
        for name, empty in EMPTY.items():
            if says.startswith(name + "["):
                value = empty
        body = [
            one
            for one in node.body
            if not (isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant))
        ]
        if value is None or not body:
            return
        first = body[0]
        indent = " " * first.col_offset
        self._add(first, f"return {value}\n{indent}{self._text(first)}", "returns early")

    def visit_If(self, node: ast.If) -> None:
        if self.scope:
            self._add(node.test, f"not ({self._text(node.test)})", "condition negated")
            if not node.orelse and isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue):
                self._add(node.test, "False", "check skipped")
        self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> None:
        if self.scope:
            self._add(node, "pass", "check skipped")

    def visit_Return(self, node: ast.Return) -> None:
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, bool):
            self._add(node.value, str(not node.value.value), "answer turned")
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if self.scope and len(node.ops) == 1 and type(node.ops[0]) in TURNED:
            left, right = self._text(node.left), self._text(node.comparators[0])
            self._add(node, f"{left} {TURNED[type(node.ops[0])]} {right}", "comparison turned")
        self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> None:
        if not self.scope and isinstance(node.targets[0], ast.Name):
            self._empty(node.targets[0].id, node.value)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not self.scope and node.value is not None and isinstance(node.target, ast.Name):
            self._empty(node.target.id, node.value)
        self.generic_visit(node)

    def _empty(self, name: str, value: ast.expr) -> None:
        inner, kind = value, type(value).__name__.lower()
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.args:
            inner, kind = value.args[0], value.func.id
        entries = inner.keys if isinstance(inner, ast.Dict) else getattr(inner, "elts", [])
        if kind in EMPTY and len(entries) >= 3:
            self.scope.append(name)
            self._add(value, EMPTY[kind], "list emptied")
            self.scope.pop()


def find_mutants() -> list[Mutant]:
    """Every possible mutant of the analysis."""
    found: list[Mutant] = []
    for path in list_analysis_files():
        source = path.read_text("utf-8")
        finder = Finder(str(path.relative_to(SOURCE)), source)
        finder.visit(ast.parse(source))
        found += finder.found
    return found


def list_analysis_files() -> list[Path]:
    """The modules of the analysis."""
    return [
        path
        for package in PACKAGES
        for path in sorted((SOURCE / package).rglob("*.py"))
        if not NOT_ANALYSIS & set(path.parts) and not WORDING.search(path.stem)
    ]


def _compiles(mutant: Mutant) -> bool:
    try:
        compile(mutant.apply((SOURCE / mutant.path).read_text("utf-8")), mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def choose_mutants(found: list[Mutant], seed: int) -> Iterator[Mutant]:
    """At most one per function, spread over the kinds."""
    dice = random.Random(seed)
    by_function: dict[tuple[str, str], list[Mutant]] = {}
    for mutant in found:
        by_function.setdefault((mutant.path, mutant.function), []).append(mutant)
    used: Counter = Counter()
    for place in dice.sample(sorted(by_function), len(by_function)):
        options = by_function[place]
        rarest = min(used[option.kind] for option in options)
        mutant = dice.choice([option for option in options if used[option.kind] == rarest])
        if _compiles(mutant):
            used[mutant.kind] += 1
            yield mutant


def trace_lines(count: int) -> dict[str, set[int]]:
    """For every module of the analysis, the lines that rows execute."""
    executed = {str(path): set() for path in list_analysis_files()}

    def follow(frame, event, _):
        lines = executed.get(frame.f_code.co_filename)
        if lines is None:
            return None
        lines.add(frame.f_lineno)

        def note(frame, event, _):
            lines.add(frame.f_lineno)
            return note

        return note

    check_row(make_rows()[0])
    sys.settrace(follow)
    try:
        for row in order_rows(count):
            check_row(row)
    finally:
        sys.settrace(None)
    return {str(Path(path).relative_to(SOURCE)): lines for path, lines in executed.items()}


def order_rows(count: int) -> list[Row]:
    """Rows in an order that soon meets every group, then every command, then the rest."""
    seen: Counter = Counter()
    ordered = []
    for row in choose_rows(len(make_rows()), ORDER_SEED):
        ordered.append((seen[row.command], row))
        seen[row.command] += 1
    ordered.sort(key=lambda pair: pair[0])
    return [row for _, row in ordered][:count]


def is_met(mutant: Mutant, executed: dict[str, set[int]]) -> bool:
    """A row executes the line; of a list of the module, a line that names it."""
    if mutant.kind != "list emptied":
        return mutant.line in executed[mutant.path]
    name = re.compile(rf"\b{mutant.function}\b")
    for path, lines in executed.items():
        text = (SOURCE / path).read_text("utf-8").splitlines()
        if any(name.search(text[line - 1]) for line in lines):
            return True
    return False


def read_corpus() -> list[dict]:
    """Requests that the table does not know: the other suites of the folder and random commands."""
    folder = Path(__file__).parents[1] / "shell" / "analysis"
    texts = [
        line
        for name in ("everyday.txt", "everyday_asks.txt", "ordinary.txt")
        for line in (folder / name).read_text("utf-8").splitlines()
    ]
    texts += list(json.loads((folder / "hostile.json").read_text("utf-8")))
    table = tomllib.loads((folder / "table.toml").read_text("utf-8"))
    texts += [text for group in table["group"] for text in group["commands"]]
    maker = Maker(ORDER_SEED)
    texts += [maker.command() for _ in range(1500)]
    texts = random.Random(ORDER_SEED).sample(texts, len(texts))
    return [
        {
            "tool": "Bash",
            "input": {"command": text},
            **CORPUS_RULES[(number + step) % len(CORPUS_RULES)],
        }
        for step in (0, 2)
        for number, text in enumerate(texts)
    ]


def find_wrong_rows(count: int) -> list[str]:
    """The rows that are wrong without any mutant."""
    return [row.id for row in order_rows(count) if check_row(row)]


def run_worker(known: Path, count: int) -> int:
    """Print the first row that a mutant makes wrong."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 1))
    before = json.loads(known.read_text())
    if all(
        ask(asked)["verdict"] == verdict
        for asked, verdict in zip(read_corpus(), before["corpus"], strict=True)
    ):
        return IDLE
    skip = set(before["wrong"])
    for row in order_rows(count):
        if row.id in skip:
            continue
        if wrong := check_row(row):
            sys.stdout.write(str(wrong).partition("\n")[0] + f" got {wrong.verdict}\n")
            return 1
    return 0


def judge(mutant: Mutant, copy: Path, known: Path, rows: int) -> tuple[str, str]:
    """Plant a mutant in the copy; say `idle`, `killed`, `crashed` or `survived`, and by what."""
    target = copy / "handaxe" / mutant.path
    before = target.read_bytes()
    target.write_text(mutant.apply(before.decode()), "utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            [sys.executable, __file__, "--worker", str(known), "--rows", str(rows)],
            env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
    finally:
        target.write_bytes(before)
    if done.returncode == -signal.SIGXCPU:
        return "crashed", "it does not come to an end"
    if done.returncode in {0, IDLE}:
        return "survived" if done.returncode == 0 else "idle", ""
    if done.stdout:
        return "killed", done.stdout.strip()
    return "crashed", (done.stderr.strip().splitlines() or ["no output"])[-1]


def main() -> int:
    """Plant mutants and count those that the table kills."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=30, help="mutants that change a verdict")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rows", type=int, default=60000, help="rows that each mutant meets")
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        return run_worker(arguments.worker, arguments.rows)
    found, executed = find_mutants(), trace_lines(6000)
    met = [one for one in found if is_met(one, executed)]
    say(f"{len(found)} possible mutants, {len(met)} on lines that rows execute")
    counts: Counter = Counter()
    with tempfile.TemporaryDirectory() as place:
        copy, known = Path(place) / "src", Path(place) / "known.json"
        shutil.copytree(SOURCE, copy / "handaxe", ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(
            copy, quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH
        )
        verdicts = [ask(asked)["verdict"] for asked in read_corpus()]
        wrong = find_wrong_rows(arguments.rows)
        known.write_text(json.dumps({"corpus": verdicts, "wrong": wrong}))
        for mutant in choose_mutants(met, arguments.seed):
            outcome, why = judge(mutant, copy, known, arguments.rows)
            counts[outcome] += 1
            say(f"{outcome:8} {mutant}" + (f"\n         {why}" if why else ""))
            if counts.total() - counts["idle"] == arguments.count:
                break
    killed = counts["killed"] + counts["crashed"]
    say(
        f"{killed} of {arguments.count} killed, {counts['crashed']} of them by a crash;"
        f" {counts['idle']} more change no verdict"
    )
    return 0 if killed * 30 >= arguments.count * 28 else 1


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
