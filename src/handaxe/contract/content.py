"""Content blocks of a result beside its text."""

from string import ascii_letters, digits
from typing import Self, cast

import msgspec

_BASE64_CHARS = frozenset(f"{ascii_letters}{digits}+/=-_\r\n")
_CHECKED_CHARS = 100
"""Enough to notice text that is not base64 at all, such as a data URL."""


class TextBlock(msgspec.Struct, frozen=True, tag_field="type", tag="text"):
    """A piece of text."""

    text: str

    def __post_init__(self) -> None:
        """Fail where the block is made, not where a provider refuses it."""
        if not isinstance(cast("object", self.text), str):
            raise TypeError(f"TextBlock: `text` is a text, not {self.text!r:.100}.")


class ImageBlock(msgspec.Struct, frozen=True, tag_field="type", tag="image", weakref=True):
    """A picture, base64-encoded."""

    media_type: str
    data: str

    def __post_init__(self) -> None:
        """Fail where the block is made, not where a provider refuses it."""
        if not isinstance(cast("object", self.data), str):
            raise TypeError("ImageBlock: `data` is base64 text. Use ImageBlock.from_bytes.")
        if not isinstance(cast("object", self.media_type), str):
            raise TypeError("ImageBlock: `media_type` is a text such as image/png.")
        if "/" not in self.media_type:
            raise ValueError(f"ImageBlock: `media_type` is image/png or so: {self.media_type!r}.")
        if not _BASE64_CHARS.issuperset(self.data[:_CHECKED_CHARS]):
            raise ValueError("ImageBlock: `data` is base64 text alone. Use ImageBlock.from_bytes.")

    @classmethod
    def from_bytes(cls, content: bytes, media_type: str = "image/png") -> Self:
        """A picture from the bytes of its file."""
        from base64 import b64encode

        return cls(media_type, b64encode(content).decode("ascii"))


ContentBlock = TextBlock | ImageBlock
