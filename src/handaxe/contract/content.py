"""Content blocks of a result beside its text."""

import msgspec


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of text."""

    text: str


class ImageBlock(msgspec.Struct, frozen=True, tag_field="type", tag="image", weakref=True):
    """A picture, base64-encoded."""

    media_type: str
    data: str


ContentBlock = TextBlock | ImageBlock
