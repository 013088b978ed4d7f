"""Draws texts at random without their context, for a reader who did not write them.

Called by `scripts/draw-texts`. Each kind of text gives the same share of the draw, so that the
many docstrings do not hide the texts that users and models see.
"""

import argparse
import ast
import random
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.architecture.sources import FUNCTIONS, MODULES, SOURCE, parse
from tests.architecture.test_texts import PROMPTS, list_texts, split_sentences

ROOT = SOURCE.parents[1]
DOCS = ROOT / "docs"
GUIDES = [ROOT / "README.md", *sorted((DOCS / "guides").glob("*.md"))]
REFERENCE = sorted((DOCS / "reference").glob("*.md"))
_FENCED = re.compile(
    r"^ *(```|~~~).*?^ *\1 *$|^---\n.*?\n---\n|<!--.*?-->", re.MULTILINE | re.DOTALL
)
_LINE_MARK = re.compile(r"^\s*(?:[-*>]|\d+\.|#+)\s+")
_LINK = re.compile(r"\[([^]]+)]\([^)]+\)")
_WORD = re.compile(r"[A-Za-z'’`\"(*]+[.,:;)`\"*]*")


class Place(NamedTuple):
    """A text and where it is."""

    text: str
    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.line}"


def is_readable(text: str) -> bool:
    """Whether it consists of words, not of code, names, numbers or a regular expression."""
    words = text.split()
    plain = [word for word in words if _WORD.fullmatch(word)]
    return len(words) > 2 and len(plain) >= 0.6 * len(words) and not re.search(r"[\\{}$]", text)


def list_docstrings(path: Path) -> Iterator[Place]:
    for node in ast.walk(parse(path)):
        if isinstance(node, (ast.Module, ast.ClassDef, *FUNCTIONS)):
            text = ast.get_docstring(node, clean=False)
            if text and isinstance(node.body[0], ast.Expr):
                yield Place(text, path, node.body[0].lineno)


def list_messages(path: Path) -> Iterator[Place]:
    """Faults, notices, reasons, remedies, help and descriptions."""
    docstrings = {(place.line, place.text) for place in list_docstrings(path)}
    for text in list_texts(path):
        if (text.line, text.text) not in docstrings and is_readable(text.text):
            yield Place(text.text, path, text.line)


def list_page_sentences(path: Path) -> Iterator[Place]:
    """The sentences of a page without its code blocks; every cell of a table counts as text."""
    page = _FENCED.sub(lambda found: "\n" * found[0].count("\n"), path.read_text(encoding="utf-8"))
    line = 1
    for paragraph in re.split(r"(\n(?=\s*(?:\n|[-*|>#]|\d+\.\s)))", page):
        cells = paragraph.split("|") if paragraph.lstrip().startswith("|") else [paragraph]
        for cell in cells:
            for sentence in split_sentences(_LINE_MARK.sub("", _LINK.sub(r"\1", cell))):
                if is_readable(sentence):
                    yield Place(sentence, path, line + len(cell) - len(cell.lstrip("\n")))
        line += paragraph.count("\n")


def collect_kinds() -> dict[str, list[Place]]:
    return {
        "messages": [place for path in MODULES for place in list_messages(path)],
        "docstrings": [place for path in MODULES for place in list_docstrings(path)],
        "prompts": [place for path in PROMPTS for place in list_page_sentences(path)],
        "guides": [place for path in GUIDES for place in list_page_sentences(path)],
        "reference": [place for path in REFERENCE for place in list_page_sentences(path)],
    }


def draw_texts(number: int, seed: int) -> list[Place]:
    chosen = random.Random(seed)
    found = collect_kinds().values()
    kinds = [list({" ".join(each.text.split()): each for each in kind}.values()) for kind in found]
    shares = [number // len(kinds) + (index < number % len(kinds)) for index in range(len(kinds))]
    drawn = [
        place
        for places, share in zip(kinds, shares, strict=True)
        for place in chosen.sample(places, min(share, len(places)))
    ]
    chosen.shuffle(drawn)
    return drawn


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="scripts/draw-texts", description=__doc__)
    parser.add_argument("number", type=int, nargs="?", default=200, help="number of texts")
    parser.add_argument("seed", type=int, nargs="?", default=1, help="seed of the draw")
    parser.add_argument("--places", action="store_true", help="print file and line too")
    options = parser.parse_args()
    for count, place in enumerate(draw_texts(options.number, options.seed), 1):
        suffix = f"  [{place}]" if options.places else ""
        sys.stdout.write(f"{count}. {' '.join(place.text.split())}{suffix}\n")
