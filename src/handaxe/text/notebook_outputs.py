"""What the outputs of a notebook cell amount to: their text, cut to fit, and their pictures."""

import re
from typing import Any

import msgspec

from handaxe.text.json_spans import Span, items, members, value_at
from handaxe.text.notebook import NotANotebook, joined

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXTS = (
    "text/markdown",
    "text/plain",
    "text/latex",
    "application/json",
    "image/svg+xml",
    "text/html",
)
"""What is shown of an output that comes in several forms: the first of these that it has."""

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# A progress bar rewrites its line again and again; only its last state matters.
_REWRITTEN = re.compile(r"[^\n]*\r(?!\n)")


class Output(msgspec.Struct, frozen=True):
    """One output of a cell."""

    kind: str
    """`stdout`, `stderr`, `result`, `display` or `error`."""
    text: str = ""
    left_out_chars: int = 0
    image: tuple[str, Span] | None = None
    """The type of a picture, and where its base64 string stands."""
    more_forms: tuple[str, ...] = ()
    """Types of the same output that are not shown."""


def read_outputs(data: bytes, spans: tuple[Span, ...], limit_chars: int) -> list[Output]:
    """The outputs of one cell, together not much longer than `limit_chars`."""
    outputs: list[Output] = []
    left = limit_chars
    for span in spans:
        output = _output(data, span, max(left, 0))
        left -= len(output.text)
        outputs.append(output)
    return outputs


def _output(data: bytes, span: Span, limit_chars: int) -> Output:
    parts = members(data, span)
    kind = value_at(data, parts["output_type"]) if "output_type" in parts else None
    if kind == "stream":
        name = value_at(data, parts["name"]) if "name" in parts else "stdout"
        text, left_out = _text(data, parts.get("text"), limit_chars)
        return Output(str(name), text, left_out)
    if kind == "error":
        return _error(data, parts, limit_chars)
    shown_as = "result" if kind == "execute_result" else "display"
    forms = members(data, parts["data"]) if "data" in parts else {}
    image = next(((name, forms[name]) for name in IMAGES if name in forms), None)
    # Beside a picture its other forms say little: usually only what kind of object it is.
    chosen = None if image else next((name for name in TEXTS if name in forms), None)
    text, left_out = _text(data, forms[chosen], limit_chars) if chosen else ("", 0)
    shown = {chosen, image[0] if image else None}
    others = tuple(name for name in forms if name not in shown)
    return Output(shown_as, text, left_out, image, others)


def _error(data: bytes, parts: dict[str, Span], limit_chars: int) -> Output:
    trace = items(data, parts["traceback"]) if "traceback" in parts else []
    lines = [str(value_at(data, line)) for line in trace]
    if not lines:
        lines = [
            ": ".join(
                str(value_at(data, parts[name])) for name in ("ename", "evalue") if name in parts
            )
        ]
    return Output("error", *_cut(_clean("\n".join(lines)), limit_chars))


def _text(data: bytes, span: Span | None, limit_chars: int) -> tuple[str, int]:
    if span is None:
        return "", 0
    value: Any = value_at(data, span)
    try:
        text = joined(value)
    except NotANotebook:
        # A form in JSON may be any value; its own spelling is as good as any other.
        text = str(memoryview(data)[slice(*span)], "utf-8")
    return _cut(_clean(text), limit_chars)


def _clean(text: str) -> str:
    return _REWRITTEN.sub("", _COLOURS.sub("", text)) if "\x1b" in text or "\r" in text else text


def _cut(text: str, limit_chars: int) -> tuple[str, int]:
    """Both ends of a long text: how it began, and what came out."""
    if len(text) <= limit_chars:
        return text, 0
    head, tail = limit_chars * 3 // 4, limit_chars // 4
    left_out = len(text) - head - tail
    shown = f"{text[:head]}\n[... {left_out:,} characters left out ...]\n"
    return shown + (text[-tail:] if tail else ""), left_out
