"""Which pictures of a conversation can be sent, and the text that replaces the others.

A picture that a provider refuses would make every later request fail, because it stays in the
history. So it is left out here, and a sentence tells the model that it was there.
"""

import binascii
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, TypeVar
from weakref import ref

import msgspec

from handaxe.contract.content import ImageBlock
from handaxe.contract.messages import Message, ToolResultBlock, UserMessage
from handaxe.text.encoding import detect_image_type

Value = TypeVar("Value")
Made = TypeVar("Made")


def cache_by_identity(make: Callable[[Value], Made]) -> Callable[[Value], Made]:
    """`make`, called once per object; its result is dropped together with the object.

    Equal objects count separately: comparing long messages would cost what this saves. Callers must
    not change the result.
    """
    known: dict[int, tuple[Made, ref[Any]]] = {}

    @wraps(make)
    def made(value: Value) -> Made:
        key = id(value)
        found = known.get(key)
        if found is None:
            # The number is used again when the value is gone, so both are forgotten at once.
            found = known[key] = make(value), ref(value, lambda _: known.pop(key, None))
        return found[0]

    return made


MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
_HEAD_CHARS = 256 * 1024
"""How much of a picture is decoded to find its size; a JPEG's lies behind its thumbnails."""


class ProviderImageLimits(msgspec.Struct, frozen=True):
    """The image limits of a provider."""

    each_chars: int
    """Of one picture, as base64."""
    side_px: int
    crowded_count: int
    """With more pictures than this, smaller sides hold."""
    crowded_side_px: int
    count: int
    all_chars: int
    """Of all pictures together, so that the request stays below the provider's size."""


ANTHROPIC = ProviderImageLimits(5 * 1024 * 1024, 8000, 20, 2000, 100, 24 * 1024 * 1024)
"""Sides and number as documented, the lower number of two; below 32 MB for a whole request."""
OPENAI = ProviderImageLimits(20 * 1024 * 1024, 12_000, 500, 12_000, 500, 40 * 1024 * 1024)
"""Guards against accidents only: servers of this format have limits of their own."""


def find_unsendable_images(
    messages: Sequence[Message], limits: ProviderImageLimits
) -> dict[int, str]:
    """By `id()` of its block, the sentence in place of each picture that cannot be sent.

    The newest pictures are kept: when there are too many, the oldest go first.
    """
    pictures = [picture for message in messages for picture in collect_images(message)]
    side_px = limits.crowded_side_px if len(pictures) > limits.crowded_count else limits.side_px
    out: dict[int, str] = {}
    count = total = 0
    for picture in reversed(pictures):
        flaw = _find_flaw(picture, limits, side_px)
        if flaw is None:
            count += 1
            total += len(picture.data)
            if count > limits.count or total > limits.all_chars:
                flaw = "there are newer pictures than the provider takes at once"
        if flaw is not None:
            out[id(picture)] = f"(A picture was left out here: {flaw}.)"
    return out


@cache_by_identity
def collect_images(message: Message) -> tuple[ImageBlock, ...]:
    """The pictures of a message, those in results as well."""
    if not isinstance(message, UserMessage):
        return ()
    found: list[ImageBlock] = []
    for block in message.content:
        inner = block.content if isinstance(block, ToolResultBlock) else (block,)
        found += [each for each in inner if isinstance(each, ImageBlock)]
    return tuple(found)


def _find_flaw(picture: ImageBlock, limits: ProviderImageLimits, side_px: int) -> str | None:
    if picture.media_type not in MEDIA_TYPES:
        return f"the provider takes no {picture.media_type or 'unknown type'}"
    if len(picture.data) > limits.each_chars:
        return f"it has {len(picture.data):,} bytes as base64, at most {limits.each_chars:,} fit"
    size = _read_size(picture)
    if isinstance(size, str):
        return size
    if size is not None and max(size) > side_px:
        return f"it is {size[0]} x {size[1]} pixels large, at most {side_px} each way fit"
    return None


@cache_by_identity
def _read_size(picture: ImageBlock) -> tuple[int, int] | str | None:
    """Width and height, None if unknown, or why there is no picture."""
    try:
        head = binascii.a2b_base64(picture.data[:_HEAD_CHARS])
    except (binascii.Error, ValueError):
        return "its data is not base64"
    if detect_image_type(head) is None:
        return "its data is not a picture"
    return read_image_size(head)


def read_image_size(head: bytes) -> tuple[int, int] | None:
    """Width and height from the beginning of a PNG, JPEG, GIF or WebP file; None if unknown."""
    kind = detect_image_type(head)
    if kind == "PNG" and len(head) >= 24:
        return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")
    if kind == "GIF" and len(head) >= 10:
        return int.from_bytes(head[6:8], "little"), int.from_bytes(head[8:10], "little")
    if kind == "WEBP" and len(head) >= 30:
        return _read_webp_size(head)
    return _read_jpeg_size(head) if kind == "JPEG" else None


def _read_webp_size(head: bytes) -> tuple[int, int] | None:
    if head[12:16] == b"VP8X":
        width = int.from_bytes(head[24:27], "little") + 1
        return width, int.from_bytes(head[27:30], "little") + 1
    if head[12:16] == b"VP8L":
        packed = int.from_bytes(head[21:25], "little")
        return (packed & 0x3FFF) + 1, ((packed >> 14) & 0x3FFF) + 1
    if head[12:16] == b"VP8 ":
        width = int.from_bytes(head[26:28], "little") & 0x3FFF
        return width, int.from_bytes(head[28:30], "little") & 0x3FFF
    return None


def _read_jpeg_size(head: bytes) -> tuple[int, int] | None:
    at = 2
    while at + 9 <= len(head) and head[at] == 0xFF:
        marker = head[at + 1]
        if marker == 0xFF:
            at += 1
            continue
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height = int.from_bytes(head[at + 5 : at + 7], "big")
            return int.from_bytes(head[at + 7 : at + 9], "big"), height
        at += 2 + int.from_bytes(head[at + 2 : at + 4], "big")
    return None
