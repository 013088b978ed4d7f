"""The result object as a JSON Schema, for readers of results in other languages."""

from typing import Annotated, Any

import msgspec

from handaxe.contract.content import ContentBlock
from handaxe.contract.decision import DecidedBy, DecidedPart, Loss, RuleProposal, Verdict

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_Count = Annotated[int, msgspec.Meta(ge=0)]


class DecisionObject(msgspec.Struct, frozen=True):
    """Whether a call may run, who said so and why."""

    verdict: Verdict
    by: DecidedBy
    rule: str | None
    source: str | None
    reason: str
    parts: list[DecidedPart] = []
    destructive: list[Loss] = []
    proposals: list[RuleProposal] = []
    proposals_leave_questions: bool = False


class ResultObject(msgspec.Struct, frozen=True):
    """The result of a call, as `call --json`, `run`, `to_json()` and the event log give it."""

    id: str
    tool: str
    ok: bool
    code: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$")] | None
    text: str
    content: list[ContentBlock]
    data: Any
    decision: DecisionObject | None
    notes: list[_Text]
    messages: list[_Text]
    duration_ms: Annotated[float, msgspec.Meta(ge=0)]
    tokens: _Count
    size_chars: _Count


def result_schema() -> dict[str, Any]:
    """The schema of a result object; a failure has a code, and nothing else has."""
    (schema,), parts = msgspec.json.schema_components([ResultObject], ref_template="#/$defs/{name}")
    whole = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **schema,
        "if": {"properties": {"ok": {"const": True}}},
        "then": {"properties": {"code": {"type": "null"}}},
        "else": {"properties": {"code": {"type": "string"}, "text": {"minLength": 1}}},
        "$defs": parts,
    }
    # Nothing in it but what JSON knows, such as lists in place of tuples.
    return msgspec.json.decode(msgspec.json.encode(whole))
