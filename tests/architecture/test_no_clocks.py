"""No test asserts how long something took: a busy machine would decide whether it passes."""

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.counted_work import grows_in_proportion

TESTS = Path(__file__).parents[1]
MODULES = sorted(TESTS.rglob("*.py"))
CLOCKS = {
    "monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "process_time",
    "process_time_ns", "thread_time", "thread_time_ns",
}  # fmt: skip
"""What only measures how long something takes; `time.time` also tells the time of day."""
GENEROUS_S = 30
"""A loop that waits for a condition may give up after that long: then it hangs, on any machine."""
MEASURED_BY_THE_PRODUCT = {"duration_ms", "duration_api_ms", "duration_s", "took_s", "elapsed_s"}
INSTEAD = (
    "asserts how long something took. Prove the behaviour instead: the order of events, who had"
    " ended when (tests/waiting.py waits for a condition), or counted work (tests/counted_work.py)."
    " How fast it is belongs into bench/."
)


class Clocked:
    """What a module measures: readings of a clock, and the durations between two of them."""

    def __init__(self, tree: ast.Module) -> None:
        self.readings: set[str] = set()
        self.durations: set[str] = set()
        self.deadlines: set[str] = set()
        before = -1
        while before != (before := len(self.readings) + len(self.durations)):
            for node in ast.walk(tree):
                self._learn(node)

    def _learn(self, node: ast.AST) -> None:
        """Follow a value to the names that it is given."""
        match node:
            case ast.Assign(targets=targets, value=value):
                self._name(targets, value)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._name([target], value)
            case (
                ast.AugAssign(target=target, value=value)
                | ast.NamedExpr(target=target, value=value)
            ):
                self._name([target], value)
            case ast.Call(func=ast.Attribute(value=ast.Name() as target, attr="append"), args=args):
                for value in args:
                    self._name([target], value)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        self._name([ast.Name(node.name)], inner.value)
            case _:
                pass

    def _name(self, targets: list[ast.expr], value: ast.expr) -> None:
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                for one, its_value in zip(target.elts, value.elts, strict=False):
                    self._name([one], its_value)
            elif isinstance(target, ast.Name) and _is_generous(value):
                self.deadlines.add(target.id)
            elif isinstance(target, ast.Name) and self.is_duration(value):
                self.durations.add(target.id)
            elif isinstance(target, ast.Name) and self.is_reading(value):
                self.readings.add(target.id)

    def is_reading(self, node: ast.expr) -> bool:
        return any(_is_clock(part) or _is_one_of(part, self.readings) for part in ast.walk(node))

    def is_duration(self, node: ast.expr) -> bool:
        return any(
            _is_one_of(part, self.durations)
            or (
                isinstance(part, ast.BinOp)
                and isinstance(part.op, ast.Sub)
                and self.is_reading(part.left)
                and self.is_reading(part.right)
            )
            for part in ast.walk(node)
        )


def _is_clock(node: ast.AST, names: set[str] = CLOCKS | {"time", "time_ns"}) -> bool:
    match node:
        case ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name), args=[]):
            return name in names
        case _:
            return False


def _is_generous(node: ast.AST) -> bool:
    match node:
        case ast.BinOp(left=left, op=ast.Add(), right=ast.Constant(value=int() | float() as s)):
            return _is_clock(left) and s >= GENEROUS_S
        case _:
            return False


def _is_one_of(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Name) and node.id in names


def _upper_bounds(node: ast.Compare) -> Iterator[ast.expr]:
    """What has to be less than something, or equal to it."""
    sides = [node.left, *node.comparators]
    for left, operator, right in zip(sides, node.ops, sides[1:], strict=False):
        if isinstance(operator, ast.Lt | ast.LtE | ast.Eq):
            yield left
        if isinstance(operator, ast.Gt | ast.GtE | ast.Eq):
            yield right


def _is_told_duration(node: ast.expr) -> bool:
    match node:
        case ast.Attribute(attr=name) | ast.Subscript(slice=ast.Constant(value=str(name))):
            return name in MEASURED_BY_THE_PRODUCT
        case _:
            return False


def timed_assertions(source: str) -> list[int]:
    """The lines of a module whose assertions depend on how long something takes."""
    tree = ast.parse(source)
    clocked = Clocked(tree)
    found: set[int] = set()
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assert):
            continue
        for part in ast.walk(statement.test):
            if not isinstance(part, ast.Compare):
                continue
            if (
                clocked.is_duration(part)
                or (
                    any(_is_clock(inner, CLOCKS) for inner in ast.walk(part))
                    and not any(_is_one_of(side, clocked.deadlines) for side in part.comparators)
                )
                or any(_is_told_duration(side) for side in _upper_bounds(part))
            ):
                found.add(statement.lineno)
    return sorted(found)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(TESTS)))
def test_no_test_asserts_how_long_something_took(path: Path):
    lines = timed_assertions(path.read_text())
    assert not lines, f"{path.relative_to(TESTS.parent)}, line {lines[0]}, {INSTEAD}"


@pytest.mark.parametrize(
    "source",
    [
        "began = time.monotonic()\nassert time.monotonic() - began < 5",
        "began = perf_counter()\nwork()\ntook = perf_counter() - began\nassert took < 0.5, 'slow'",
        "assert 0.01 < time.monotonic() - began < 5",
        "while not ready():\n    assert time.monotonic() < deadline",
        "end = time.monotonic() + 5\nwhile not ready():\n    assert time.monotonic() < end",
        "loop = get_running_loop()\nbegan = loop.time()\nassert loop.time() - began < 5",
        "start = time.time()\nassert time.time() - start <= 1 and done",
        "t = []\na = process_time()\nt.append(process_time() - a)\nassert max(t) < 1",
        "longest, last = 0, perf_counter()\nlongest = perf_counter() - last\nassert longest < 0.5",
        "def s():\n    a = perf_counter()\n    return perf_counter() - a\nassert min(s(), s()) < 0.2",
        "a = perf_counter_ns()\nif (d := perf_counter_ns() - a):\n    assert not d > 1",
        "assert result.duration_ms < 100",
        "assert 100 >= answer['duration_ms']",
    ],
)
def test_timed_assertions_are_found(source: str):
    assert timed_assertions(source)


@pytest.mark.parametrize(
    "source",
    [
        "now = time.time()\nassert path.stat().st_mtime >= now - 5",
        "then = time.time() - 3600\nos.utime(path, (then, then))\nassert pruned() == 3",
        "end = time.monotonic() + 30\nwhile not ready():\n    assert time.monotonic() < end",
        "assert result.duration_ms >= 0",
        "until = time.monotonic() + 30\nwhile time.monotonic() < until:\n    look()",
        "seconds = round(time.monotonic() - began)\nprint(seconds)\nassert found < 5",
        "assert time(12, 30) < other",
    ],
)
def test_the_time_of_day_and_measures_that_nothing_depends_on_are_no_timed_assertions(source: str):
    assert timed_assertions(source) == []


def test_counted_work_tells_a_square_from_a_line():
    def line(size: int) -> Callable[[], object]:
        return lambda: [abs(number) for number in range(size)]

    def square(size: int) -> Callable[[], object]:
        return lambda: [abs(a + b) for a in range(size) for b in range(size)]

    assert grows_in_proportion(line, 50)
    assert not grows_in_proportion(square, 50)
