"""A conversation as data: files, calls, answers, files afterwards.

A scenario is a TOML file that people without Python can read and other implementations can run.
`{root}` in a text is the project's directory.
"""

import tomllib
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.app.session import Session, get_parts
from handaxe.contract.call import ToolCall
from handaxe.contract.result import ToolResult


class ScenarioCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One call and its expected result."""

    tool: str
    input: dict[str, Any] = {}
    id: str | None = None
    fault: str | None = None
    """The code it fails with; without one it must succeed."""
    text: str | None = None
    contains: list[str] = []
    lacks: list[str] = []
    data: dict[str, Any] = {}
    """Values in the result's data."""
    notes: list[str] = []
    files: dict[str, str] = {}
    """Files that another program writes before this call."""


class Scenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A conversation with its expected files."""

    summary: str
    proves: list[str]
    calls: list[ScenarioCall]
    files: dict[str, str] = {}
    mode: str = "acceptEdits"
    allow: list[str] = []
    ask: list[str] = []
    deny: list[str] = []
    settings: dict[str, Any] = {}
    trusted: bool | None = None
    """Whether the project's settings files are trusted."""
    files_after: dict[str, str] = {}
    gone_after: list[str] = []


def read_scenario(path: Path) -> Scenario:
    """The scenario in a file; raises if it is not one."""
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Scenario)


async def run_scenario(scenario: Scenario, root: Path, home: Path) -> list[str]:
    """Run a scenario in an empty directory and return the differences."""
    _write_files(root, scenario.files)
    problems: list[str] = []
    async with Session(
        root,
        permission_mode=scenario.mode,
        allow=scenario.allow,
        ask=scenario.ask,
        deny=scenario.deny,
        settings=_fill_root(scenario.settings, root),
        trusted=scenario.trusted,
        home=home,
    ) as session:
        for number, call in enumerate(scenario.calls, 1):
            _write_files(root, call.files)
            call_id = call.id or get_parts(session).new_call_id()
            call_input = _fill_root(call.input, root)
            result = await session.run(ToolCall(call_id, call.tool, call_input))
            differences = _compare_result(call, result, root)
            problems += [f"call {number}: {difference}" for difference in differences]
    for name, content in scenario.files_after.items():
        actual = (root / name).read_bytes() if (root / name).is_file() else None
        if actual != content.encode():
            problems.append(f"{name} is {actual!r}, not {content.encode()!r}")
    problems += [f"{name} is still there" for name in scenario.gone_after if (root / name).exists()]
    return problems


def _compare_result(call: ScenarioCall, result: ToolResult, root: Path) -> list[str]:
    found: list[str] = []
    if call.fault != result.code:
        found.append(f"code {result.code!r}, not {call.fault!r}: {result.text}")
    if call.text is not None and result.text != _fill_root(call.text, root):
        found.append(f"text {result.text!r}, not {_fill_root(call.text, root)!r}")
    found += [
        f"text lacks {piece!r}: {result.text!r}"
        for piece in call.contains
        if _fill_root(piece, root) not in result.text
    ]
    found += [
        f"text has {piece!r}: {result.text!r}"
        for piece in call.lacks
        if _fill_root(piece, root) in result.text
    ]
    data = msgspec.json.decode(msgspec.json.encode(result.data, enc_hook=str))
    if not _is_subset(data, _fill_root(call.data, root)):
        found.append(f"data {data!r} lacks {call.data!r}")
    found += [
        f"notes {result.notes!r} lack {note!r}"
        for note in call.notes
        if not any(note in told for told in result.notes)
    ]
    return found


def _is_subset(actual: Any, wanted: Any) -> bool:  # noqa: ANN401 - any JSON values
    if not isinstance(wanted, dict):
        return actual == wanted
    pairs = cast("dict[str, Any]", wanted).items()
    return isinstance(actual, dict) and all(
        key in actual and _is_subset(actual[key], value) for key, value in pairs
    )


def _fill_root(value: Any, root: Path) -> Any:  # noqa: ANN401 - any JSON value
    if isinstance(value, str):
        return value.replace("{root}", str(root))
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        return {key: _fill_root(item, root) for key, item in pairs}
    if isinstance(value, list):
        return [_fill_root(item, root) for item in cast("list[Any]", value)]
    return value


def _write_files(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode())
