"""The outputs of a notebook cell: their text, cut to fit, and their pictures."""

import re
from collections import deque
from typing import Any

import msgspec

from handaxe.text.json_spans import (
    Span,
    find_members,
    list_items,
    parse_string_ends,
    parse_value,
    walk_items,
)
from handaxe.text.notebook.document import NotANotebook, join_lines

IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")
TEXTS = (
    "text/markdown",
    "text/plain",
    "text/latex",
    "application/json",
    "image/svg+xml",
    "text/html",
)
"""The preferred forms of an output that comes in several forms, best first."""

_COLOURS = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LONG_BYTES = 1 << 18


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
        output = _read_output(data, span, max(left, 0))
        left -= len(output.text)
        outputs.append(output)
    return outputs


def _read_output(data: bytes, span: Span, limit_chars: int) -> Output:
    parts = find_members(data, span)
    kind = parse_value(data, parts["output_type"]) if "output_type" in parts else None
    if kind == "stream":
        name = parse_value(data, parts["name"]) if "name" in parts else "stdout"
        text, left_out = _read_text(data, parts.get("text"), limit_chars)
        return Output(str(name), text, left_out)
    if kind == "error":
        return _read_error(data, parts, limit_chars)
    shown_as = "result" if kind == "execute_result" else "display"
    forms = find_members(data, parts["data"]) if "data" in parts else {}
    image = next(((name, forms[name]) for name in IMAGES if name in forms), None)
    # Beside a picture its other forms say little: usually only what kind of object it is.
    chosen = None if image else next((name for name in TEXTS if name in forms), None)
    text, left_out = _read_text(data, forms[chosen], limit_chars) if chosen else ("", 0)
    shown = {chosen, image[0] if image else None}
    others = tuple(name for name in forms if name not in shown)
    return Output(shown_as, text, left_out, image, others)


def _read_error(data: bytes, parts: dict[str, Span], limit_chars: int) -> Output:
    trace = list_items(data, parts["traceback"]) if "traceback" in parts else []
    lines = [str(parse_value(data, line)) for line in trace]
    if not lines:
        lines = [
            ": ".join(
                str(parse_value(data, parts[name])) for name in ("ename", "evalue") if name in parts
            )
        ]
    return Output("error", *_cut(_clean("\n".join(lines)), limit_chars))


def _read_text(data: bytes, span: Span | None, limit_chars: int) -> tuple[str, int]:
    if span is None:
        return "", 0
    if span[1] - span[0] > _LONG_BYTES:
        return _read_long_text(data, span, limit_chars)
    value: Any = parse_value(data, span)
    try:
        text = join_lines(value)
    except NotANotebook:
        # A form in JSON may be any value; its own spelling is as good as any other.
        text = str(memoryview(data)[slice(*span)], "utf-8")
    return _cut(_clean(text), limit_chars)


def _read_long_text(data: bytes, span: Span, limit_chars: int) -> tuple[str, int]:
    """Both ends of a text that is too long; the omitted part is counted in bytes."""
    head_chars, tail_chars = limit_chars * 3 // 4, limit_chars // 4
    if data[span[0] : span[0] + 1] == b"[":
        head, tail = _read_line_ends(data, span, head_chars, tail_chars)
    else:
        head, tail = parse_string_ends(data, span, 4 * head_chars, 4 * tail_chars)
    head, tail = _clean(head)[:head_chars], _clean(tail)[-tail_chars:] if tail_chars else ""
    left_out = span[1] - span[0] - len(head.encode()) - len(tail.encode())
    return f"{head}\n[... about {left_out:,} bytes left out ...]\n{tail}", left_out


def _read_line_ends(data: bytes, span: Span, head_chars: int, tail_chars: int) -> tuple[str, str]:
    head: list[str] = []
    last: deque[Span] = deque()
    head_left, tail_bytes, final = head_chars, 0, span
    for item in walk_items(data, span):
        if head_left > 0:
            head.append(_read_string_ends(data, item, 4 * head_chars)[0])
            head_left -= len(head[-1])
            final = item
            continue
        last.append(item)
        tail_bytes += item[1] - item[0]
        while tail_bytes - (last[0][1] - last[0][0]) > 4 * tail_chars:
            first = last.popleft()
            tail_bytes -= first[1] - first[0]
    if not last and final[1] - final[0] > _LONG_BYTES:
        last.append(final)
    return "".join(head), "".join(_read_string_ends(data, item, 4 * tail_chars)[1] for item in last)


def _read_string_ends(data: bytes, span: Span, size_bytes: int) -> tuple[str, str]:
    """Both ends of a string; the whole of a short one."""
    if span[1] - span[0] > _LONG_BYTES:
        return parse_string_ends(data, span, size_bytes, size_bytes)
    text = str(parse_value(data, span))
    return text, text


def _clean(text: str) -> str:
    """The text without colours, and of lines that rewrite themselves only the last state."""
    if "\x1b" in text:
        text = _COLOURS.sub("", text)
    if "\r" in text:
        lines = text.replace("\r\n", "\n").split("\n")
        text = "\n".join(line.rpartition("\r")[2] for line in lines)
    return text


def _cut(text: str, limit_chars: int) -> tuple[str, int]:
    """Both ends of a long text: its beginning and its result."""
    if len(text) <= limit_chars:
        return text, 0
    head, tail = limit_chars * 3 // 4, limit_chars // 4
    left_out = len(text) - head - tail
    shown = f"{text[:head]}\n[... {left_out:,} characters left out ...]\n"
    return shown + (text[-tail:] if tail else ""), left_out
