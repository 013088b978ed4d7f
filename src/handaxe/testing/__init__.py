"""For tool authors: conformance checks, fakes and scenarios.

Belongs here: what a test of a tool needs; the tests of handaxe use it too.
Does not: pytest; these are plain functions.
May import: `app` and the layers below it.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from handaxe.testing.conformance import check_every_output, problems_of
    from handaxe.testing.scenario import Scenario, ScenarioCall, read_scenario, run_scenario

_HOMES = {
    "Scenario": "handaxe.testing.scenario",
    "ScenarioCall": "handaxe.testing.scenario",
    "check_every_output": "handaxe.testing.conformance",
    "problems_of": "handaxe.testing.conformance",
    "read_scenario": "handaxe.testing.scenario",
    "run_scenario": "handaxe.testing.scenario",
}

__all__ = [
    "Scenario",
    "ScenarioCall",
    "check_every_output",
    "problems_of",
    "read_scenario",
    "run_scenario",
]


def __getattr__(name: str) -> "Any":  # noqa: ANN401 - every public name has its own type
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'handaxe.testing' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
