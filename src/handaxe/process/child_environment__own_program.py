"""How a module of ours is run as a program: the same interpreter, and nothing of the environment.

Neither variables nor the current directory have a say in what the program imports.
"""

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

_START = "import sys; sys.path[:0] = {paths!r}; from {module} import main; main()"


def build_child_argv(module: str, packages: Sequence[str]) -> list[str]:
    """What runs `main` of a module that can import `packages`, which have to be there."""
    start = _START.format(paths=_find_package_paths(packages), module=module)
    return [sys.executable, "-I", "-S", "-c", start]


def _find_package_paths(packages: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in ("handaxe", *packages):
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[str(Path(spec.submodule_search_locations[0]).parent)] = None
    return list(found)
