"""The format of scripts: turns in TOML, or one turn per line in JSON."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import msgspec

from handaxe.contract.faults import SetupError
from handaxe.contract.messages import StopReason, TokenUsage
from handaxe.contract.ports.model import Failure


class ScriptedCall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call the model makes."""

    tool: str
    input: Any = msgspec.field(default_factory=dict[str, Any])
    raw: str | None = None
    """In place of `input`: its JSON text as it is, broken or not."""
    id: str | None = None


class ScriptedFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What goes wrong in a turn."""

    how: Failure
    after: int = 0
    """How many pieces arrive before it."""
    retries: int = 0
    """So many failed attempts are reported, then the turn goes on as if nothing had been."""
    delay_ms: float = 0.0
    status: int | None = None
    sentence: str = ""


class ScriptedTurn(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One response of the model."""

    text: str = ""
    thinking: str = ""
    signature: str = ""
    call: tuple[ScriptedCall, ...] = ()
    expect: str | tuple[str, ...] = ()
    """What the last message must contain: text, or a pattern between slashes."""
    when: str = ""
    """The turn is passed over unless the last message contains this."""
    capture: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """By name, a pattern; what its group matches in the last message can be used as `{{name}}`."""
    fail: Failure | ScriptedFailure | None = None
    usage: TokenUsage | None = None
    stop_reason: StopReason | None = None
    delay_ms: float | None = None
    """A pause before each piece."""
    agent: str = ""
    label: str = ""
    go_to: str = ""
    """The label of the turn that follows; without it, the next one."""

    @property
    def expected(self) -> tuple[str, ...]:
        """All that the last message must contain."""
        return (self.expect,) if isinstance(self.expect, str) else self.expect


class AgentMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a conversation is known to be another agent's."""

    match: str = ""
    """What its first message contains."""
    system: str = ""
    """What its system prompt contains."""


class ModelScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All turns of one file."""

    turn: tuple[ScriptedTurn, ...] = ()
    agents: dict[str, AgentMatch] = msgspec.field(default_factory=dict[str, AgentMatch])
    name: str = "scripted"
    chunk_chars: int = 16
    delay_ms: float = 0.0
    context_tokens: int = 200_000


_PATTERN = re.compile(r"/(.*)/", re.DOTALL)


def has_match(text: str, wanted: str) -> bool:
    """Whether `text` contains `wanted`, or matches it where it is a pattern between slashes."""
    pattern = _PATTERN.fullmatch(wanted)
    if pattern is None:
        return wanted in text
    return re.search(pattern[1], text, re.MULTILINE) is not None


def load_script(path: Path) -> ModelScript:
    """The script in a file; `.toml` is TOML, everything else JSON lines."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise SetupError(f"The script {path} cannot be read: {error}") from error
    try:
        raw = tomllib.loads(text) if path.suffix == ".toml" else _from_lines(text)
    except (tomllib.TOMLDecodeError, msgspec.DecodeError) as error:
        raise SetupError(f"The script {path} is not well-formed: {error}") from error
    return parse_script(raw, str(path))


def parse_script(raw: Mapping[str, Any], place: str = "script") -> ModelScript:
    """The script in a mapping, checked."""
    try:
        script = msgspec.convert(dict(raw), ModelScript)
    except msgspec.ValidationError as error:
        raise SetupError(f"The script {place} has a mistake: {error}") from error
    if script.chunk_chars < 1:
        raise SetupError(f"The script {place} has a mistake: chunk_chars must be at least 1")
    labels = {turn.label for turn in script.turn if turn.label}
    for number, turn in enumerate(script.turn, 1):
        where = f"The script {place} has a mistake: turn {number}"
        if turn.go_to and turn.go_to not in labels:
            raise SetupError(f"{where} goes to {turn.go_to!r}, and no turn has that label")
        _check_patterns(turn, where)
    return script


def _from_lines(text: str) -> dict[str, Any]:
    """Each line is a turn, or a line of options that has none of a turn's fields."""
    whole: dict[str, Any] = {"turn": []}
    options = set(ModelScript.__struct_fields__) - set(ScriptedTurn.__struct_fields__)
    for line in text.splitlines():
        if not line.strip():
            continue
        item: Any = msgspec.json.decode(line)
        fields = cast("dict[str, Any]", item) if isinstance(item, dict) else {"turn": item}
        if fields and fields.keys() <= options | {"delay_ms"}:
            whole |= fields
        else:
            whole["turn"].append(fields)
    return whole


def _check_patterns(turn: ScriptedTurn, where: str) -> None:
    slashed = [_PATTERN.fullmatch(wanted) for wanted in (*turn.expected, turn.when)]
    for pattern in (*(found[1] for found in slashed if found), *turn.capture.values()):
        try:
            re.compile(pattern)
        except re.error as error:
            raise SetupError(f"{where} has a broken pattern {pattern!r}: {error}") from error
