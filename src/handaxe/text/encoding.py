"""Which encoding a file is in, and its text, without losing a byte.

Every answer is checked by a round trip over the whole input, so encoding what was decoded gives the
same bytes back. Legacy encodings are guessed from a bounded sample; `legacy.py` holds that part.
Nothing here reads a disk: callers bring the bytes.
"""

import codecs
import re
from collections.abc import Iterator

import msgspec

from handaxe.text.chunks import LONG, yield_turn

_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    # Before UTF-16: its little-endian mark is how a UTF-32 mark begins.
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNICODE = frozenset({"utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"})
_CHUNK_BYTES = 1 << 18
_SAMPLE_BYTES = 1 << 16
# Control bytes that plain text does hold: bell to carriage return, and escape for colours.
_CONTROLS = bytes(set(range(32)) - set(range(7, 14)) - {27}) + b"\x7f"
_MAX_CONTROL_SHARE = 0.3
_SURROGATE = "[\ud800-\udfff]"


class NotText(Exception):
    """The bytes are binary: they hold NUL, or invalid UTF-8 with mostly control characters."""


class UnencodableCharacter(Exception):
    """A character that the encoding cannot hold.

    Attributes:
        character: The first such character.
        position: Its place in the text, counted in characters from 0.
        encoding: The encoding that has no bytes for it.
    """

    def __init__(self, character: str, position: int, encoding: str) -> None:
        super().__init__(
            f"{encoding} cannot hold U+{ord(character):04X} (character {position + 1})"
        )
        self.character = character
        self.position = position
        self.encoding = encoding


class Format(msgspec.Struct, frozen=True):
    """How a text is stored: the encoding, and the byte order mark in front of it."""

    encoding: str = "utf-8"
    bom: bytes = b""


class DecodedText(Format, frozen=True):
    """A text with its format; line endings are those of the file, the mark is removed."""

    text: str = ""


def decode(data: bytes) -> DecodedText:
    """The text of `data`.

    Raises:
        NotText: The bytes are binary.
    """
    found = sniff(data)
    if len(data) > LONG and found.encoding in _UNICODE and not data.isascii():
        text = _decode_chunks(data, found)
    else:
        text = str(memoryview(data)[len(found.bom) :], found.encoding)
    return DecodedText(encoding=found.encoding, bom=found.bom, text=text)


def sniff(data: bytes) -> Format:
    """The format of `data`, without making its text.

    Raises:
        NotText: The bytes are binary.
    """
    for bom, encoding in _BOMS:
        if data.startswith(bom) and _is_valid(data, encoding, len(bom)):
            # A UTF-8 mark does not make NUL text; only wide encodings hold it in every letter.
            if encoding == "utf-8" and b"\0" in data:
                raise NotText
            return Format(encoding=encoding, bom=bom)
    if b"\0" in data:
        raise NotText
    if _is_valid(data, "utf-8", 0):
        return Format()
    if is_mostly_controls(data):
        raise NotText
    from handaxe.text.legacy_encoding import guess_encoding

    return Format(encoding=guess_encoding(data))


def encode(text: str, like: Format) -> bytes:
    """`text` as bytes in the format of another text, with its byte order mark.

    Raises:
        CannotEncode: The encoding has no bytes for a character.
    """
    return like.bom + encode_part(text, like.encoding)


def encode_part(text: str, encoding: str) -> bytes:
    """`text` as bytes without a mark, for the middle of a file.

    Raises:
        CannotEncode: The encoding has no bytes for a character.
    """
    try:
        data = text.encode(encoding)
    except UnicodeEncodeError as error:
        raise UnencodableCharacter(text[error.start], error.start, encoding) from None
    # Some legacy codecs write a look-alike (a yen sign as a backslash); that changes the text.
    if encoding not in _UNICODE and (back := data.decode(encoding, "replace")) != text:
        position = next(
            i for i, (a, b) in enumerate(zip(text, back + "\0", strict=False)) if a != b
        )
        raise UnencodableCharacter(text[position], position, encoding)
    return data


def is_empty(content: bytes) -> bool:
    """Whether a file holds no text: no bytes at all, or only a byte order mark."""
    return not content or any(content == bom for bom, _ in _BOMS)


def has_surrogates(text: str) -> bool:
    """Whether `text` holds half of a surrogate pair, which no encoding can store."""
    return not text.isascii() and re.search(_SURROGATE, text) is not None


def is_mostly_controls(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 begin like binary data; a legacy encoding accepts any."""
    sample = data[:_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > len(sample) * _MAX_CONTROL_SHARE


def _decode_chunks(data: bytes, stored: Format) -> str:
    """Valid text, with a turn for other threads after each chunk."""
    decoder = codecs.getincrementaldecoder(stored.encoding)()
    pieces: list[str] = []
    for chunk in _split_chunks(data, len(stored.bom)):
        pieces.append(decoder.decode(chunk))
        yield_turn()
    pieces.append(decoder.decode(b"", final=True))
    return "".join(pieces)


def _is_valid(data: bytes, encoding: str, start: int) -> bool:
    """Whether `data` from `start` decodes strictly, looking at one chunk at a time."""
    if encoding == "utf-8" and data.isascii():
        return True
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in _split_chunks(data, start):
            decoder.decode(chunk)
            if len(data) > LONG:
                yield_turn()
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def _split_chunks(data: bytes, start: int) -> Iterator[memoryview]:
    view = memoryview(data)
    for begin in range(start, len(data), _CHUNK_BYTES):
        yield view[begin : begin + _CHUNK_BYTES]


HEAD_BYTES = 1024
"""How much of a file is needed to decide."""


def detect_image_type(head: bytes) -> str | None:
    """`PNG`, `JPEG`, `GIF` or `WEBP`; None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WEBP"
    return None


def is_pdf(head: bytes) -> bool:
    """Whether this is how a PDF begins; some have a few bytes of something else in front."""
    if head.startswith(b"%PDF-"):
        return True
    at = head.find(b"\n%PDF-", 0, HEAD_BYTES)
    return at >= 0 and b"\0" in head[:at]
