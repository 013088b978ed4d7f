"""The encoding of text that is not Unicode: guessed from its letters, then proved by a round trip.

A text is decoded with every candidate. The best one gives letters that one language uses, without
a capital inside a word and without signs that are rare in texts. `bench/encodings.py` counts how
often that is right.
"""

import re
from collections import Counter
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

_SAMPLE_BYTES = 1 << 11
_ENOUGH_BYTES = 8
# Without the no-break space, which stands beside quotation marks.
_HIGH_RUN = re.compile(rb"[\x80-\x9f\xa1-\xff]+")
_LIKELY = 0.65
_LATIN_NAMES = ("windows-1252", "iso-8859-1")

_WESTERN = (
    "áéíóúñü", "àâçéèêëîïôùûœæ", "äöüß", "ãõçáéíóúâêôà", "åäöé", "æøåéò", "èéàìòù", "ëïéöüó",
    "àçèéíïòóúü", "äõöüšžå",
)  # fmt: skip
_CENTRAL_EUROPEAN = (
    "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ",
)  # fmt: skip
_LATIN = {
    "windows-1252": _WESTERN,
    "windows-1254": ("çğıöşüâî\u0307",),
    "iso-8859-1": ("áðéíóúýþæö",),
    "windows-1250": _CENTRAL_EUROPEAN,
    "windows-1257": ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"),
    "iso8859-2": _CENTRAL_EUROPEAN,
}
"""The letters beyond ASCII of each language; of equal encodings the first is taken."""
_RUSSIAN = "оеаинтсрвлкмдпуябгзыьчйхжюшщцэфъё"
_UKRAINIAN = "оаинітевсрдлкумпязьгбчхйшцжщюєїґф"
_BELARUSIAN = "аінеярслдкўыотпумзьцчбгвйхжюшэфё"
_SOUTH_SLAVIC = "аоеинрстувкјмдлпзбгчцшжхњљћђфџѓќѕ"
_GREEK = "αοιετνσηυρπκμλςθδγωφχβξζψάέήίόύώϊϋΐΰ"
_ALPHABETS = {
    "windows-1251": (_RUSSIAN, _UKRAINIAN, _BELARUSIAN, _SOUTH_SLAVIC),
    "koi8-r": (_RUSSIAN,),
    "koi8-u": (_UKRAINIAN,),
    "iso8859-5": (_RUSSIAN, _UKRAINIAN),
    "cp866": (_RUSSIAN,),
    "windows-1253": (_GREEK,),
    "iso8859-7": (_GREEK,),
    "windows-1255": ("יוהלאתרמבשנדחקעפסטזגצכךםןףץ",),
    "windows-1256": ("المينرتبوةعدسفقكحجصطذخشضغثظزهىءآأؤإئًٌٍَُِّْـ",),
    "cp874": ("านรกอเงมยลวดทสตะปบหคพไแจขชใผโซณธถภษศฐฟญฏฎฑฒฆฌฉฝฮฬฤฦฯำฅๅๆุูึัืีิฺ็่้๊๋์ํ",),
}
"""The letters of each language, the most frequent ones first."""
_FREQUENT = 12


class _Charset(NamedTuple):
    """A charset with several bytes per character."""

    codec: str
    """The widest codec of its family."""
    core: str
    """The codec whose first bytes are sorted by how common a character is."""
    first: int
    last: int
    """The first bytes of its common characters."""
    frequent: str
    names: tuple[str, ...]
    """The names to try, the narrowest first: a file should not get a wider encoding."""


_HAN = "的一是不了在人有我他个们中来上大为和国地到以说时要就出会可也你对生能而子那得于着下自之"
_HAN_TRADITIONAL = (
    "的一是不了在人有我他個們中來上大為和國地到以說時要就出會可也你對生能而子那得於著下自"
)
_KANA = "".join(map(chr, (*range(0x3041, 0x3094), *range(0x30A1, 0x30FF))))
_HANGUL = "이다는의에을하고한지로은를가니기서사있도인자시수어정일나리대해보아라"
_CHARSETS = (
    _Charset("gb18030", "gb2312", 0xB0, 0xD7, _HAN, ("gbk", "gb18030")),
    _Charset("cp949", "euc-kr", 0xB0, 0xC8, _HANGUL, ("euc-kr", "cp949")),
    _Charset("cp950", "big5", 0xA4, 0xC6, _HAN_TRADITIONAL, ("big5", "cp950")),
    _Charset("euc-jp", "euc-jp", 0xB0, 0xCF, _KANA, ("euc-jp",)),
    _Charset("cp932", "euc-jp", 0xB0, 0xCF, _KANA, ("shift_jis", "cp932")),
)
_MARKS = frozenset("¡¿“”„‘’‚«»–—…€©®°§·•×\xa0、。！？：；，（）《》「」『』【】・～％\u3000־")
_RARE_MARKS = frozenset("ªº½¼²³µ±£¥¹")
_REPLACED = "\ufffd"


def guess_encoding(data: bytes) -> str:
    """The encoding of `data`, which is neither UTF-8 nor binary; encoding it again gives `data`."""
    likely = (names for score, names in _rank_encodings(_take_sample(data)) if score > _LIKELY)
    ranked = (name for names in (*likely, _LATIN_NAMES) for name in names)
    # Latin-1 has a character for every byte, so one name always fits.
    return next(name for name in ranked if _is_round_trip(data, name))


def detect_encoding(data: bytes) -> str | None:
    """The encoding of `data` if it is clearly text in one; None if it may be damaged."""
    sample = _take_sample(data)
    if sum(map(len, _HIGH_RUN.findall(sample))) < _ENOUGH_BYTES:
        return None
    likely = (names for score, names in _rank_encodings(sample) if score > _LIKELY)
    return next((name for names in likely for name in names if _is_round_trip(data, name)), None)


def _take_sample(data: bytes) -> bytes:
    """The first lines with bytes beyond ASCII."""
    lines: list[bytes] = []
    size = 0
    for line in data.splitlines():
        if not line.isascii():
            lines.append(line[:_SAMPLE_BYTES])
            size += len(line)
            if size > _SAMPLE_BYTES:
                break
    return b"\n".join(lines)


def _rank_encodings(sample: bytes) -> list[tuple[float, tuple[str, ...]]]:
    """All encodings with their scores, the best first."""
    runs = _HIGH_RUN.findall(sample)
    size = sum(map(len, runs))
    # In Latin text, most bytes beyond ASCII stand between ASCII letters.
    single = sum(len(run) == 1 for run in runs) / max(len(runs), 1) - 0.6
    latin = 2 * single if single > 0 else 0.5 * single
    scored: list[tuple[float, tuple[str, ...]]] = []
    for charset in _CHARSETS:
        text = sample.decode(charset.codec, "replace")
        scored.append((_score_charset(text, charset) + 0.1, charset.names))
    for name, alphabets in _ALPHABETS.items():
        text = sample.decode(name, "replace")
        scored.append((_score_alphabets(text, alphabets, is_latin=False), (name,)))
    for order, (name, alphabets) in enumerate(_LATIN.items()):
        text = sample.decode(name, "replace")
        score = _score_alphabets(text, alphabets, is_latin=True)
        names = _LATIN_NAMES if name in _LATIN_NAMES else (name,)
        scored.append((score + latin - 0.3 * order / max(6, size), names))
    return sorted(scored, key=lambda one: one[0], reverse=True)


def _score_charset(text: str, charset: _Charset) -> float:
    counted = Counter(char for char in text if char > "\x7f")
    total = sum(count * _weigh_wide(char, charset) for char, count in counted.items())
    # A letter of these scripts is never between two ASCII letters.
    inside = zip(text, text[1:], text[2:], strict=False)
    total -= sum(b > "\x7f" and _is_ascii_letter(a) and _is_ascii_letter(c) for a, b, c in inside)
    return total / max(counted.total(), 1)


@lru_cache(maxsize=1 << 14)
def _weigh_wide(char: str, charset: _Charset) -> float:
    if char in charset.frequent:
        return 1.4
    if char in _MARKS:
        return 0.8
    try:
        lead = char.encode(charset.core)[0]
    except UnicodeEncodeError:
        return -1 if char == _REPLACED or "\ue000" <= char < "\uf900" else -0.3
    if charset.first <= lead <= charset.last:
        return 1
    return 0 if lead > charset.last else -0.5


def _score_alphabets(text: str, alphabets: tuple[str, ...], *, is_latin: bool) -> float:
    counted = Counter(char for char in text.lower() if char > "\x7f")
    frequent = 1.0 if is_latin else 1.2
    best = max(
        sum(
            count * (_weigh_other(char) if char not in letters else
                     frequent if char in letters[:_FREQUENT] else 1)
            for char, count in counted.items()
        )
        for letters in alphabets
    )  # fmt: skip
    bad = 0.0
    for (a, b), count in Counter(pairwise(text)).items():
        if a <= "\x7f" and b <= "\x7f":
            continue
        if (a.islower() and b.isupper()) or (a.isalpha() and b in "¡¿"):
            bad += count
        elif not is_latin:
            bad += count * _weigh_pair(a, b)
    return (best - bad) / max(counted.total(), 1)


def _weigh_other(char: str) -> float:
    if char in _MARKS:
        return 0.8
    return 0.4 if char in _RARE_MARKS else -1 if char == _REPLACED else -0.6


def _weigh_pair(a: str, b: str) -> float:
    """How unlikely two characters are beside each other in a script that is not Latin."""
    if (_is_ascii_letter(a) and b not in _MARKS) or (_is_ascii_letter(b) and a not in _MARKS):
        return 1
    return 0.3 if a.isupper() and b.isupper() else 0


def _is_ascii_letter(char: str) -> bool:
    return char.isascii() and char.isalpha()


def _is_round_trip(data: bytes, name: str) -> bool:
    try:
        return data.decode(name).encode(name) == data
    except UnicodeError:
        return False
