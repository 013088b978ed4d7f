"""Read the body of an answer: decompressed within a limit, and its type."""

import codecs
import re
import zlib
from collections.abc import AsyncIterator

from handaxe.contract.faults.web import PageTooLarge, WrongType

ACCEPTED_ENCODINGS = "gzip, identity"
_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 1 << 18
_MEMBER_START = b"\x1f"
_META_CHARSET = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE
)
_TEXT_TYPES = {
    "application/ecmascript",
    "application/javascript",
    "application/json",
    "application/sql",
    "application/toml",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-yaml",
    "application/xml",
    "application/yaml",
}
HTML_TYPES = {"application/xhtml+xml", "text/html"}
_MEDIA_TYPE = re.compile(r"[a-z0-9][\w!#$&^.+-]{0,99}/[a-z0-9][\w!#$&^.+-]{0,99}", re.ASCII)
_CODECS_OF_PAGES = re.compile(
    r"utf-(?:8|16|32).*|iso8859-\d+|cp\d+|koi8-\w|mac-\w+|gb\w+|big5\w*|euc_\w+"
    r"|iso2022_\w+|shift_jis\w*|tis-620|ascii"
)
"""Python has codecs besides: some take hours for a page, some fail, some run escapes."""
_AS_BROWSERS_READ = {
    "ascii": "cp1252",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "tis-620": "cp874",
}
"""Encodings that browsers read as a larger one."""


async def read_body(
    url: str, encoding: str, pieces: AsyncIterator[bytes], limit_bytes: int
) -> bytes:
    """The whole body, decompressed.

    Raises:
        PageTooLarge: it is longer than the limit, or unfolds to more.
        WrongType: its encoding was not accepted, or it is damaged.
    """
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip"):
        raise WrongType(url, f"came with the encoding {name!r}, which was not asked for")
    unpacker = _Unpacker() if "gzip" in name else None
    body = bytearray()
    received = 0
    async for piece in pieces:
        received += len(piece)
        rest = piece
        while rest:
            part, rest = rest, b""
            if unpacker is not None:
                try:
                    part, rest = unpacker.unpack(part)
                except zlib.error as error:
                    raise WrongType(url, f"has damaged gzip content ({error})") from None
            body += part
            if max(len(body), received) > limit_bytes:
                raise PageTooLarge(url, limit_bytes)
    if unpacker is not None and body and not unpacker.is_complete:
        raise WrongType(url, "ended in the middle of its compressed content")
    return bytes(body)


class _Unpacker:
    """Unpacks gzip piece by piece: one member or several, and without what follows the last."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP)

    @property
    def is_complete(self) -> bool:
        """Whether the last member has ended."""
        return self._member.eof

    def unpack(self, packed: bytes) -> tuple[bytes, bytes]:
        """A part of the content, bounded in its size, and what is still packed."""
        if self._member.eof:
            if not packed.startswith(_MEMBER_START):
                return b"", b""
            self._member = zlib.decompressobj(_GZIP)
        content = self._member.decompress(packed, _PIECE_BYTES)
        return content, self._member.unused_data or self._member.unconsumed_tail


def split_content_type(value: str) -> tuple[str, str]:
    """The media type and the charset that a header names, in lower case; empty if invalid."""
    named, _, parameters = value.partition(";")
    media_type = named.strip().lower()
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", parameters, re.IGNORECASE)
    is_valid = _MEDIA_TYPE.fullmatch(media_type) is not None
    return media_type if is_valid else "", found[1].lower() if found else ""


def detect_media_type(named: str, body: bytes) -> str:
    """The type that a server names; where it names none, what the content looks like."""
    if named and named != "application/octet-stream":
        return named
    from handaxe.text.encoding import detect_image_type, is_pdf

    if (image := detect_image_type(body[:64])) is not None:
        return image
    if is_pdf(body[:1024]):
        return "application/pdf"
    head = body[:1024].lstrip().lower()
    if head.startswith((b"<!doctype html", b"<html")):
        return "text/html"
    return "text/plain" if b"\0" not in body[:8192] and named == "" else named or "text/plain"


def is_text_type(media_type: str) -> bool:
    """Whether content of a type can be shown as text."""
    return (
        media_type.startswith("text/")
        or media_type in _TEXT_TYPES
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def decode_text(body: bytes, charset: str, *, is_html: bool) -> str:
    """The body as text: by its byte order mark, the header, the page's own word, then UTF-8."""
    for mark, name in (
        (b"\xef\xbb\xbf", "utf-8-sig"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(name, "replace")
    codec = _find_codec(charset)
    if codec is None and is_html and (found := _META_CHARSET.search(body[:4096])):
        codec = _find_codec(found[1].decode("ascii"))
        if codec is not None and codec.startswith("utf-16"):
            # A page whose tags can be read like this is in no wide encoding.
            codec = None
    if codec is not None:
        return body.decode(codec, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


def _find_codec(label: str) -> str | None:
    """The codec for a name of an encoding; None if no page can be in it."""
    try:
        name = codecs.lookup(label.removeprefix("x-")).name
    except (LookupError, UnicodeError):
        return None
    if _CODECS_OF_PAGES.fullmatch(name) is None:
        return None
    return _AS_BROWSERS_READ.get(name, name)
