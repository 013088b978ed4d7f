"""The environment of programs that handaxe starts.

It is an allow-list, so a secret with an unexpected name is not passed on.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path

from handaxe.text.secrets import has_matching_pattern

PASSED_ON = frozenset(
    {
        "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TEMP", "TERM", "TMP", "TMPDIR",
        "TZ", "USER",
    }
)  # fmt: skip


def clean_environment(
    inherited: Mapping[str, str], more: Mapping[str, str], named: Iterable[str] = ()
) -> dict[str, str]:
    """The harmless part of `inherited`, plus explicit additions.

    `named` are names or patterns of further variables to pass.
    """
    named = tuple(named)
    kept = {
        name: value
        for name, value in inherited.items()
        if name in PASSED_ON or name.startswith("LC_") or has_matching_pattern(name, named)
    }
    return {**kept, **more}


_START = "import sys; sys.path[:0] = {paths!r}; from {module} import main; main()"


def build_child_argv(module: str, packages: Sequence[str]) -> list[str]:
    """The command that runs `main` of a module with the given installed packages."""
    start = _START.format(paths=_find_package_paths(packages), module=module)
    return [sys.executable, "-I", "-S", "-c", start]


def _find_package_paths(packages: Sequence[str]) -> list[str]:
    found: dict[str, None] = {}
    for name in ("handaxe", *packages):
        spec = find_spec(name)
        if spec is not None and spec.submodule_search_locations:
            found[str(Path(spec.submodule_search_locations[0]).parent)] = None
    return list(found)
