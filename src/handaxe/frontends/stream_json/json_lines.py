"""Messages as JSON lines with a maximum length.

Clients reject lines above 1 MiB. Longer messages are shortened visibly: long texts lose their
middle, images become a sentence.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec

from handaxe.text.escape import format_count, to_visible_json
from handaxe.text.sanitize import escape_line_ends, scrub

MAX_LINE_BYTES = 1_000_000
_SMALLEST_CHARS = 200
_FIRST_CHARS = 400_000

Json = dict[str, Any]
_encoder = msgspec.json.Encoder(enc_hook=str)


def encode(message: Json) -> bytes:
    """The message on one line, shortened if it is too long."""
    line = _encode_line(message)
    if len(line) <= MAX_LINE_BYTES:
        return line
    limit = _FIRST_CHARS
    while limit >= _SMALLEST_CHARS:
        line = _encode_line(truncate_value(message, limit))
        if len(line) <= MAX_LINE_BYTES:
            return line
        limit //= 2
    kept = {key: value for key, value in message.items() if isinstance(value, str | int | None)}
    return _encode_line({**kept, "too_long": True})


def can_fit_line(message: Json) -> bool:
    """Whether a message fits without shortening."""
    return len(_encode_line(message)) <= MAX_LINE_BYTES


def truncate_value(value: Any, limit_chars: int) -> Any:  # noqa: ANN401 - any JSON value
    """The value with texts and images up to the limit."""
    if isinstance(value, str):
        return _truncate_text(value, limit_chars)
    if isinstance(value, dict):
        block = cast("Json", value)
        if block.get("type") == "image" and len(str(block.get("source"))) > limit_chars:
            return {"type": "text", "text": "[An image that is too large for this stream.]"}
        return {key: truncate_value(item, limit_chars) for key, item in block.items()}
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        most = max(limit_chars // 20, 50)
        kept = [truncate_value(item, limit_chars) for item in items[:most]]
        if len(items) > most:
            kept.append(f"[... {format_count(len(items) - most, 'more item')}]")
        return kept
    return value


def _truncate_text(text: str, limit_chars: int) -> str:
    if len(text) <= limit_chars:
        return text
    half = limit_chars // 2
    gone = len(text) - 2 * half
    return f"{text[:half]}\n[... {format_count(gone, 'character')} left out ...]\n{text[-half:]}"


def _encode_line(message: Json) -> bytes:
    try:
        line = _encoder.encode(message)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(message))
    return escape_line_ends(line) + b"\n"


class LineWriter:
    """Writes complete messages and flushes."""

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        self._write = write or _write_stdout

    def __call__(self, message: Json) -> None:
        """Write one message."""
        self._write(encode(message))


def _write_stdout(line: bytes) -> None:
    if sys.stdout.isatty():
        line = to_visible_json(line.decode()).encode()
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
