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
    """A call of the model."""

    tool: str
    input: Any = msgspec.field(default_factory=dict[str, Any])
    raw: str | None = None
    """JSON text instead of `input`; it may be broken."""
    id: str | None = None


class ScriptedFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A failure in a turn."""

    how: Failure
    after: int = 0
    """The number of pieces before the failure."""
    retries: int = 0
    """The number of failed attempts to report; then the turn continues normally."""
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
    """Text that the last message must contain, or a pattern between slashes."""
    when: str = ""
    """The turn is skipped unless the last message contains this."""
    capture: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    """Patterns by name; the text that the group matches can be used as `{{name}}`."""
    fail: Failure | ScriptedFailure | None = None
    usage: TokenUsage | None = None
    stop_reason: StopReason | None = None
    delay_ms: float | None = None
    """A pause before each piece."""
    agent: str = ""
    label: str = ""
    go_to: str = ""
    """The label of the turn that follows; by default the next turn."""

    @property
    def expected(self) -> tuple[str, ...]:
        """All texts that the last message must contain."""
        return (self.expect,) if isinstance(self.expect, str) else self.expect


class AgentMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How to recognise the conversation of another agent."""

    match: str = ""
    """Text of its first message."""
    system: str = ""
    """Text of its system prompt."""


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
    """Whether `text` contains `wanted`, or matches it if it is a pattern between slashes."""
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
            raise SetupError(f"{where} goes to the label {turn.go_to!r}, which no turn has")
        _check_patterns(turn, where)
    return script


def _from_lines(text: str) -> dict[str, Any]:
    """Each line is a turn, or options without any field of a turn."""
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
