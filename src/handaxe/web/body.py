"""Read the body of an answer: decompressed within a limit, and its type."""

import re
import zlib
from collections.abc import AsyncIterator

from handaxe.contract.faults.web import PageTooLarge, WrongType

ACCEPTED_ENCODINGS = "gzip, identity"
_GZIP = 16 + zlib.MAX_WBITS
_PIECE_BYTES = 1 << 18
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
    unpacker = zlib.decompressobj(_GZIP)
    is_packed = "gzip" in name
    body = bytearray()
    async for piece in pieces:
        rest = piece
        while rest:
            part, rest = rest, b""
            if is_packed:
                # Bounded, so that no piece unfolds to more than fits.
                try:
                    part = unpacker.decompress(part, _PIECE_BYTES)
                except zlib.error as error:
                    raise WrongType(url, f"has damaged gzip content ({error})") from None
                rest = unpacker.unconsumed_tail
            body += part
            if len(body) > limit_bytes:
                raise PageTooLarge(url, limit_bytes)
    if is_packed and body and not unpacker.eof:
        raise WrongType(url, "ended in the middle of its compressed content")
    return bytes(body)


def split_content_type(value: str) -> tuple[str, str]:
    """The media type and the charset that a header names, in lower case."""
    media_type, _, parameters = value.partition(";")
    found = re.search(r"charset\s*=\s*\"?([\w.:-]+)", parameters, re.IGNORECASE)
    return media_type.strip().lower(), found[1].lower() if found else ""


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
    named = [charset]
    if is_html and (found := _META_CHARSET.search(body[:4096])):
        named.append(found[1].decode("ascii").lower())
    for name in filter(None, named):
        try:
            return body.decode(_ALIASES.get(name, name), "replace")
        except LookupError:
            continue
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        return body.decode("cp1252", "replace")


_ALIASES = {"iso-8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252", "x-sjis": "shift_jis"}
"""Names that browsers read as another encoding."""
