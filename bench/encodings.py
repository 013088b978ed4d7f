"""How often the encoding of a text is found: `uv run python bench/encodings.py DIRECTORY`.

DIRECTORY holds real texts as compiled translations, LANGUAGE/LC_MESSAGES/NAME.mo at any depth; the
Django package is a good one. Every language is encoded in the legacy encodings it is written in. A
row shows how many of 100 samples were decoded to the same text: one message alone, a comment in a
source file, 5 lines, 40 lines. `--wrong` prints the samples that were not.
"""

import argparse
import gettext
import random
import sys
from collections import Counter, defaultdict
from pathlib import Path

from handaxe.text.encoding import decode

ENCODINGS = {
    "zh_Hans": ("gbk", "gb18030"), "zh_Hant": ("big5",), "ja": ("shift_jis", "euc-jp"), "ko": ("euc-kr",),
    "ru": ("windows-1251", "koi8-r", "iso8859-5", "cp866"), "uk": ("windows-1251", "koi8-u"),
    "de": ("windows-1252",), "fr": ("windows-1252",), "es": ("windows-1252",), "sv": ("windows-1252",),
    "pt": ("windows-1252",), "pl": ("windows-1250", "iso8859-2"), "cs": ("windows-1250", "iso8859-2"),
    "hu": ("windows-1250",), "el": ("windows-1253", "iso8859-7"), "tr": ("windows-1254",),
    "he": ("windows-1255",), "ar": ("windows-1256",), "lt": ("windows-1257",), "th": ("cp874",),
}  # fmt: skip
SHAPES = {"message": 1, "comment": 1, "5 lines": 5, "40 lines": 40}
SAMPLES = 100


def load_messages(directory: Path) -> dict[str, list[str]]:
    """The messages beyond ASCII of each language."""
    found: dict[str, set[str]] = defaultdict(set)
    for file in directory.rglob("*.mo"):
        language = file.parent.parent.name
        if language in ENCODINGS:
            with file.open("rb") as opened:
                catalog = gettext.GNUTranslations(opened)._catalog
            for text in catalog.values():
                lines = [line.strip() for line in text.splitlines() if not line.isascii()]
                found[language].update(line for line in lines if len(line) > 3)
    return {language: sorted(found[language]) for language in ENCODINGS}


def make_samples(messages: list[str], encoding: str, shape: str) -> list[str]:
    """Different texts of a shape that the encoding can hold."""
    choose = random.Random(shape)
    fit = [message for message in messages if can_encode(message, encoding)]
    joined = ["\n".join(choose.sample(fit, SHAPES[shape])) for _ in range(SAMPLES)]
    return [f"# {text}\nx = 1\n" if shape == "comment" else text for text in joined]


def can_encode(text: str, encoding: str) -> bool:
    try:
        return text.encode(encoding).decode(encoding) == text
    except UnicodeError:
        return False


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path)
    parser.add_argument("--wrong", action="store_true")
    options = parser.parse_args()
    messages = load_messages(options.directory)
    print("| language | encoding |", " | ".join(SHAPES), "|")
    print("|---|---|" + "---|" * len(SHAPES))
    total: Counter[str] = Counter()
    for language, encodings in ENCODINGS.items():
        for encoding in encodings:
            row = []
            for shape in SHAPES:
                right = 0
                for text in make_samples(messages[language], encoding, shape):
                    found = decode(text.encode(encoding))
                    right += found.text == text
                    if options.wrong and found.text != text:
                        sys.stderr.write(f"{encoding} as {found.encoding}: {text[:80]!r}\n")
                row.append(str(right))
                total[shape] += right
            print(f"| {language} | {encoding} |", " | ".join(row), "|", flush=True)
    count = sum(map(len, ENCODINGS.values()))
    print("| all | |", " | ".join(f"{total[shape] / count:.1f}" for shape in SHAPES), "|")


if __name__ == "__main__":
    main()
