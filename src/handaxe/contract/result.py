"""The answer to one call: text for the model, data for the host, blocks for the human."""

from typing import Any, cast

import msgspec

from handaxe.contract.content import ContentBlock
from handaxe.contract.decision import Decision
from handaxe.contract.display import Display
from handaxe.contract.faults import ToolFailed, ToolFault, describe_error, is_code


class ToolResult(msgspec.Struct, frozen=True):
    """The result of a call.

    A tool fills what it knows (`text`, `data`, `content`, `display`, `notes`, `messages`);
    the pipeline fills the rest.
    """

    text: str = ""
    """The text for the model."""
    data: Any = None
    """The same facts for a program; of the tool's `output_type`, where it has one."""
    content: tuple[ContentBlock, ...] = ()
    """Blocks for the model beside the text, such as pictures."""
    display: Display | None = None
    """The display for users, or None to show the text."""
    notes: tuple[str, ...] = ()
    """Remarks of the runtime, such as what was read leniently."""
    messages: tuple[str, ...] = ()
    """Extra messages for the conversation, beside the result itself."""
    ok: bool = True
    """Whether the call succeeded."""
    code: str | None = None
    """Which fault it is, where the call did not succeed."""
    id: str = ""
    """The id of the call."""
    tool: str = ""
    """The name of the tool."""
    decision: Decision | None = None
    """Whether the call was allowed, by whom and why."""
    duration_ms: float = 0.0
    tokens: int = 0
    """About how many tokens the text is."""
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


def to_plain_struct(value: Any) -> Any:  # noqa: ANN401 - any part of an event
    """A struct of handaxe as JSON data, each field by its name in Python; anything else as data."""
    if value is None or isinstance(value, str | int | float):
        return value
    if _is_own_struct(value):
        if hasattr(value, "to_json"):
            return value.to_json()
        config = cast("msgspec.Struct", value).__struct_config__
        fields = {name: to_plain_struct(getattr(value, name)) for name in value.__struct_fields__}
        return fields if config.tag is None else {str(config.tag_field): config.tag, **fields}
    if isinstance(value, tuple):
        return [to_plain_struct(item) for item in cast("tuple[object, ...]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        if any(map(_is_own_struct, items.values())):
            return {name: to_plain_struct(item) for name, item in items.items()}
    return to_json_data(value)


def _is_own_struct(value: object) -> bool:
    """Whether handaxe defines the class of a value."""
    return hasattr(value, "__struct_fields__") and type(value).__module__.startswith("handaxe.")
