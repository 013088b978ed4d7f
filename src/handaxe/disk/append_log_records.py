"""One record of a log as bytes: written without parsing the payload, read with its checksum."""

import re
from binascii import crc32
from functools import cache

import msgspec


@cache
def _compile_head() -> re.Pattern[bytes]:
    """How a line begins; made for whoever reads a log, writing one needs none."""
    return re.compile(rb'\{"seq":(0|[1-9][0-9]{0,18}),"crc":"([0-9a-f]{8})","event":')


class LogRecord(msgspec.Struct, frozen=True):
    """One record as it stands in a log."""

    offset: int
    seq: int
    payload: bytes


def format_line(seq: int, payload: bytes) -> bytes:
    """The line of a record, newline included."""
    return b'{"seq":%d,"crc":"%08x","event":%b}\n' % (seq, crc32(payload), payload)


def parse_line(line: bytes, offset: int) -> LogRecord | str:
    """The record of a line, or what is wrong with it."""
    if not line.endswith(b"\n"):
        return "the line is not finished"
    head = _compile_head().match(line)
    if head is None or not line.endswith(b"}\n"):
        return "the line is not a record"
    payload = line[head.end() : -2]
    if crc32(payload) != int(head[2], 16):
        return "the checksum does not fit the payload"
    try:
        msgspec.json.decode(payload, type=msgspec.Raw)
    except msgspec.DecodeError:
        return "the payload is not JSON"
    return LogRecord(offset, int(head[1]), payload)
