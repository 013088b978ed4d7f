"""The answer to one call: text for the model, data for the host, blocks for the human."""

from typing import Any, cast

import msgspec

from handaxe.contract.content import ContentBlock
from handaxe.contract.decision import Decision
from handaxe.contract.display import Display
from handaxe.contract.faults import ToolFailed, ToolFault, describe_error, is_code


class ToolResult(msgspec.Struct, frozen=True):
    """What a call gave.

    A tool fills what it knows (`text`, `data`, `content`, `display`, `notes`, `messages`);
    the pipeline fills the rest.
    """

    text: str = ""
    data: Any = None
    content: tuple[ContentBlock, ...] = ()
    display: Display | None = None
    notes: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    """Extra messages for the conversation, beside the result itself."""
    ok: bool = True
    code: str | None = None
    id: str = ""
    tool: str = ""
    decision: Decision | None = None
    duration_ms: float = 0.0
    tokens: int = 0
    size_chars: int = 0
    """How long the text was before an oversized one was replaced by its preview."""
    stops: str | None = None
    """Why the agent should stop altogether, as a hook or a person said."""

    @classmethod
    def from_fault(cls, fault: ToolFault) -> "ToolResult":
        """The failed result that a fault becomes."""
        # A subclass may have left out its code, or the initialiser that all others share.
        code, sentence = getattr(fault, "code", None), getattr(fault, "sentence", None)
        text = describe_error(fault) if sentence is None else str(sentence)
        return cls(
            text=text if text.strip() else ToolFailed.no_words,
            data=getattr(fault, "data", {}),
            ok=False,
            code=code if is_code(code) else ToolFailed.code,
        )

    def to_json(self) -> dict[str, Any]:
        """The result object, the same for every door."""
        from handaxe.contract.json_values import to_json_value

        return {
            "id": self.id,
            "tool": self.tool,
            "ok": self.ok,
            "code": self.code,
            "text": self.text,
            "content": list(msgspec.to_builtins(self.content, enc_hook=to_json_value)),
            "data": to_json_data(self.data),
            "decision": self.decision.to_json() if self.decision is not None else None,
            "notes": list(self.notes),
            "messages": list(self.messages),
            "duration_ms": self.duration_ms,
            "tokens": self.tokens,
            "size_chars": self.size_chars,
        }


def to_json_data(data: Any) -> Any:  # noqa: ANN401 - whatever a tool gave
    """Data with nothing in it that JSON does not know; an own tool may give anything."""
    if data is None:
        return {}
    from handaxe.contract.json_values import replace_tuples, to_json_or_text

    for foreign in (None, to_json_or_text):
        try:
            return replace_tuples(msgspec.to_builtins(data, enc_hook=foreign, str_keys=True))
        except Exception:  # noqa: BLE001, S112 - code of whoever made the data may run here
            continue
    return f"({type(cast('object', data)).__name__})"
