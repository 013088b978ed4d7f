"""Convert terminal output of a program to plain text."""

import re

_SEQUENCES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]?"  # colours, cursor, modes
    r"|\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # titles, links
    r"|\x1b[PX^_][^\x1b\n]*(?:\x1b\\)?"  # device strings
    r"|\x1b[ -/]*[0-~]?"  # everything shorter
    r"|\x9b[0-?]*[ -/]*[@-~]?"
)
_SPECIAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_OVERSTRUCK = re.compile(r"[^\x08\n]\x08")
_REDRAWN = re.compile(r"^.*\r(?=[^\r\n])", re.MULTILINE)
_SILENT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Control bytes that plain text does hold: bell to carriage return, and escape for colours.
_CONTROLS = bytes(set(range(32)) - set(range(7, 14)) - {27}) + b"\x7f"
_SAMPLE_BYTES = 1 << 13
_MAX_CONTROL_SHARE = 0.1


def to_plain_text(raw: bytes, *, begins_whole: bool = False, ends_whole: bool = False) -> str:
    """The text a reader would have seen at last: no escape sequences, no overwritten progress.

    Lines in another encoding are read in it if it is clear; other invalid bytes become U+FFFD. A
    character cut in two at either end is left out, unless that end is marked as whole.
    """
    begin = 0 if begins_whole else _find_first_character(raw)
    end = len(raw) if ends_whole else _find_last_character(raw)
    text = _decode_lines(raw[begin:end])
    if _SPECIAL.search(text) is None:
        return text
    text = re.sub(_SEQUENCES, "", text).replace("\r\n", "\n")
    if "\b" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        text = _REDRAWN.sub("", text.replace("\r\n", "\n"))
    return _SILENT.sub("", text)


def is_binary(sample: bytes) -> bool:
    """Whether these bytes are binary: they hold NUL, or many control characters."""
    sample = sample[:_SAMPLE_BYTES]
    if b"\0" in sample:
        return True
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > len(sample) * _MAX_CONTROL_SHARE


def _decode_lines(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        pass
    from handaxe.text.legacy_encoding import detect_encoding

    lines = raw.split(b"\n")
    encoding = detect_encoding(b"\n".join(line for line in lines if not _is_utf8(line)))
    if encoding is None:
        return raw.decode("utf-8", "replace")
    return "\n".join(
        line.decode() if _is_utf8(line) else line.decode(encoding, "replace") for line in lines
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _find_first_character(raw: bytes) -> int:
    begin = 0
    while begin < min(3, len(raw)) and raw[begin] & 0xC0 == 0x80:
        begin += 1
    return begin


def _find_last_character(raw: bytes) -> int:
    for back in range(1, min(3, len(raw)) + 1):
        byte = raw[-back]
        if byte & 0xC0 != 0x80:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
            return len(raw) - back if needed > back else len(raw)
    return len(raw)
