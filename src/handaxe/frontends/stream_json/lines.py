"""Messages as lines: one JSON object each, never longer than a client takes.

Clients give up on a line of 1 MiB. What would be longer is made shorter where it says so: long
texts lose their middle, pictures become a sentence.
"""

import sys
from collections.abc import Callable
from typing import Any, cast

import msgspec

from handaxe.text.counting import counted
from handaxe.text.visible import show_json
from handaxe.text.wellformed import on_one_line, scrub

MAX_LINE_BYTES = 1_000_000
_SMALLEST_CHARS = 200
_FIRST_CHARS = 400_000

Json = dict[str, Any]
_encoder = msgspec.json.Encoder(enc_hook=str)


def encode(message: Json) -> bytes:
    """The message on one line, shortened if need be."""
    line = _encoded(message)
    if len(line) <= MAX_LINE_BYTES:
        return line
    limit = _FIRST_CHARS
    while limit >= _SMALLEST_CHARS:
        line = _encoded(shortened(message, limit))
        if len(line) <= MAX_LINE_BYTES:
            return line
        limit //= 2
    kept = {key: value for key, value in message.items() if isinstance(value, str | int | None)}
    return _encoded({**kept, "too_long": True})


def fits(message: Json) -> bool:
    """Whether a message goes out whole."""
    return len(_encoded(message)) <= MAX_LINE_BYTES


def shortened(value: Any, limit_chars: int) -> Any:  # noqa: ANN401 - any JSON value
    """The value with no text longer than the limit, and no picture that is."""
    if isinstance(value, str):
        return _cut(value, limit_chars)
    if isinstance(value, dict):
        block = cast("Json", value)
        if block.get("type") == "image" and len(str(block.get("source"))) > limit_chars:
            return {"type": "text", "text": "[A picture that is too large to be passed on here.]"}
        return {key: shortened(item, limit_chars) for key, item in block.items()}
    if isinstance(value, list | tuple):
        items = cast("list[Any]", value)
        most = max(limit_chars // 20, 50)
        kept = [shortened(item, limit_chars) for item in items[:most]]
        if len(items) > most:
            kept.append(f"[... {counted(len(items) - most, 'more item')}]")
        return kept
    return value


def _cut(text: str, limit_chars: int) -> str:
    if len(text) <= limit_chars:
        return text
    half = limit_chars // 2
    gone = len(text) - 2 * half
    return f"{text[:half]}\n[... {counted(gone, 'character')} left out ...]\n{text[-half:]}"


def _encoded(message: Json) -> bytes:
    try:
        line = _encoder.encode(message)
    except (UnicodeEncodeError, ValueError, RecursionError):
        line = _encoder.encode(scrub(message))
    return on_one_line(line) + b"\n"


class LineWriter:
    """Writes messages whole and at once."""

    def __init__(self, write: Callable[[bytes], object] | None = None) -> None:
        self._write = write or _to_stdout

    def __call__(self, message: Json) -> None:
        """Write one message."""
        self._write(encode(message))


def _to_stdout(line: bytes) -> None:
    if sys.stdout.isatty():
        line = show_json(line.decode()).encode()
    sys.stdout.buffer.write(line)
    sys.stdout.buffer.flush()
