"""The modules of handaxe, parsed once for all architecture tests."""

import ast
import gc
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

import handaxe

SOURCE = Path(handaxe.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Definition(NamedTuple):
    """A function or class with its module."""

    module: Path
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef

    @property
    def lines(self) -> int:
        return (self.node.end_lineno or self.node.lineno) - self.node.lineno + 1

    def __str__(self) -> str:
        return f"{shorten(self.module)}: {self.node.name} ({self.lines} lines)"


def shorten(path: Path) -> str:
    """The path of a module below the package."""
    return path.relative_to(SOURCE).as_posix()


@contextmanager
def without_collector() -> Generator[None]:
    """No garbage collection, which would look through all earlier trees again and again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.freeze()
            gc.enable()


@cache
def parse(path: Path) -> ast.Module:
    with without_collector():
        return ast.parse(path.read_text(encoding="utf-8"))


def list_definitions() -> list[Definition]:
    """Every function and class, methods and nested ones too."""
    return [
        Definition(path, node)
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, (*FUNCTIONS, ast.ClassDef))
    ]


def list_public() -> list[Definition]:
    """Functions and classes at the top of a module whose names have no underscore."""
    return [
        Definition(path, node)
        for path in MODULES
        for node in parse(path).body
        if isinstance(node, (*FUNCTIONS, ast.ClassDef)) and not node.name.startswith("_")
    ]
