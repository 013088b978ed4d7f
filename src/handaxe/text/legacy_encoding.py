"""The encoding of text that is not Unicode, guessed and then proved by a round trip.

Statistics come from chardet, over a short list of encodings that source files are really in: on the
few bytes of one comment a long list is a lottery. The last resorts hold any bytes at all.
"""

import re

_SAMPLE_BYTES = 1 << 15
_LIKELY = ("gb18030", "big5hkscs", "cp932", "euc_jis_2004", "cp949")
_CYRILLIC = ("koi8-r", "cp1251")
_WESTERN = ("cp1252", "iso8859-1")
_RARER = (
    "cp1250", "iso8859-2", "cp1253", "iso8859-7", "cp1254", "cp1255", "cp1256", "cp1257",
    "iso8859-5", "koi8-u", "cp866", "cp874",
)  # fmt: skip
# The narrowest member of a family first: a file that needs no wider one should not grow into it.
_FAMILIES: dict[str, tuple[str, ...]] = {
    "gb18030": ("gbk", "gb18030"),
    "big5hkscs": ("big5", "cp950"),
    "cp932": ("shift_jis", "cp932"),
    "shift_jis_2004": ("shift_jis", "cp932"),
    "euc_jis_2004": ("euc-jp",),
    "cp949": ("euc-kr", "cp949"),
    "euc_kr": ("euc-kr", "cp949"),
    "cp1251": ("windows-1251",),
    "cp1252": ("windows-1252",),
    "iso8859-1": ("windows-1252",),
    "cp1250": ("windows-1250",),
    "cp1253": ("windows-1253",),
    "cp1254": ("windows-1254",),
    "cp1255": ("windows-1255",),
    "cp1256": ("windows-1256",),
    "cp1257": ("windows-1257",),
}
_LAST_RESORTS = ("windows-1252", "iso-8859-1")
# The detector's own scale: short Western text scores a few hundredths in any encoding.
_SURE = 0.1
_ENOUGH_BYTES = 8
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")


def guess_encoding(data: bytes) -> str:
    """The encoding of `data`, which is neither UTF-8 nor binary; encoding it again gives `data`."""
    for name in (*_list_candidates(_sample(data)), *_LAST_RESORTS):
        if _is_round_trip(data, name):
            return name
    # Latin-1 holds every byte, so the loop always ends before this line.
    raise AssertionError


def detect_encoding(data: bytes) -> str | None:
    """The encoding of `data` where it is plain that it is text in one; None if it may be broken."""
    sample = _sample(data)
    if _count_high(sample) < _ENOUGH_BYTES:
        return None
    for name in _list_candidates(sample) or _LAST_RESORTS[:1]:
        if _is_round_trip(data, name) and _is_mostly_letters(sample, name):
            return name
    return None


def _sample(data: bytes) -> bytes:
    """A part of `data` from its first line beyond ASCII on, whole lines where it can be."""
    first = _HIGH_RUN.search(data)
    begin = data.rfind(b"\n", 0, first.start() if first else 0) + 1
    if len(data) - begin <= _SAMPLE_BYTES:
        return data[begin:]
    # A cut inside a line could split a character, and the detector would take that for a sign.
    end = data.rfind(b"\n", begin, begin + _SAMPLE_BYTES)
    return data[begin : end + 1 if end > begin else begin + _SAMPLE_BYTES]


def _list_candidates(sample: bytes) -> tuple[str, ...]:
    """The codecs to try, likeliest first."""
    name, confidence = _detect_codec(sample, (*_LIKELY, *_CYRILLIC, *_WESTERN, *_RARER))
    if name in _RARER and (confidence < _SURE or _count_high(sample) < _ENOUGH_BYTES):
        name, confidence = _detect_codec(sample, (*_LIKELY, *_CYRILLIC, *_WESTERN))
    if name in _CYRILLIC and not _is_mostly_letters(sample, name):
        name, confidence = _detect_codec(sample, (*_LIKELY, *_WESTERN))
    if name not in _LIKELY and confidence < _SURE and _is_western(sample):
        return ()
    return _FAMILIES.get(name, (name,))


def _detect_codec(sample: bytes, encodings: tuple[str, ...]) -> tuple[str, float]:
    import chardet

    answer = chardet.detect(
        sample,
        max_bytes=_SAMPLE_BYTES,
        compat_names=False,
        prefer_superset=False,
        include_encodings=encodings,
    )
    return (answer["encoding"] or "cp1252").lower(), answer["confidence"]


def _count_high(sample: bytes) -> int:
    return sum(map(len, _HIGH_RUN.findall(sample)))


def _is_mostly_letters(sample: bytes, name: str) -> bool:
    beyond = [c for c in sample.decode(name, "replace") if c > "\x7f"]
    return sum(map(str.isalpha, beyond)) > 0.8 * len(beyond)


def _is_western(sample: bytes) -> bool:
    """Whether bytes beyond ASCII stand alone between others, as accents and quotes do."""
    runs = _HIGH_RUN.findall(sample)
    return sum(len(run) == 1 for run in runs) > 0.6 * len(runs)


def _is_round_trip(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except UnicodeError:
        return False
