"""Texts are plain English: no banned phrase and no sentence that is too long.

A text is a string that reads like one (messages, help, notices, reasons, prompts) or a docstring.
`banned_phrases.txt` holds the phrases. `texts_to_rewrite.txt` holds the modules that still have
offences; `scripts/plain-texts --update` rewrites it after you improved some.
"""

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tests.architecture.sources import MODULES, SOURCE, parse, shorten, without_collector

HERE = Path(__file__).parent

MAX_CHARS = 200
MAX_WORDS = 30
PHRASES = HERE / "banned_phrases.txt"
TO_REWRITE = HERE / "texts_to_rewrite.txt"
PROMPTS = sorted(SOURCE.rglob("*.md"))
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n\s*(?=[-*|]\s|\d+\.\s)|\s+Raises:\s")
_CODE_SPAN = re.compile(r"`[^`\n]+`|\bNone\b")
_WORD = re.compile(r"[^\s]*[A-Za-z][^\s]*")
_CODE = re.compile(r"[{};$\\]|=\"|\(\)|^\s*(?:#!|import |def |set -)|--\w+ --\w+", re.MULTILINE)


class Text(NamedTuple):
    """One text of a file, with placeholders as `X`."""

    path: Path
    line: int
    text: str


class Offence(NamedTuple):
    """What is wrong with a text."""

    text: Text
    problem: str

    def __str__(self) -> str:
        return f"{shorten(self.text.path)}:{self.text.line}: {self.problem}"


@cache
def read_phrases() -> list[tuple[re.Pattern[str], str]]:
    rows = [
        re.split(r"\s{2,}", line.strip(), maxsplit=1)
        for line in PHRASES.read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    return [(re.compile(pattern), instead) for pattern, instead in rows]


@cache
def join_phrases() -> re.Pattern[str]:
    """All phrases as one pattern: most texts match none of them."""
    return re.compile("|".join(f"(?:{each.pattern})" for each, _ in read_phrases()))


def _join_parts(node: ast.JoinedStr) -> str:
    return "".join(
        str(part.value) if isinstance(part, ast.Constant) else "X" for part in node.values
    )


def iterate_strings(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """The strings of a module, an f-string as one string."""
    nodes: list[Any] = [tree]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Constant):
            if isinstance(node.value, str):
                yield node.lineno, node.value
        elif isinstance(node, ast.JoinedStr):
            yield node.lineno, _join_parts(node)
            nodes += [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        elif isinstance(node, ast.AST) and not isinstance(node, ast.Name):
            for value in vars(node).values():
                if isinstance(value, list):
                    nodes += value
                elif isinstance(value, ast.AST):
                    nodes.append(value)


def list_texts(path: Path) -> list[Text]:
    """The strings of a file that could be a text: they have at least two words."""
    if path.suffix == ".md":
        return [Text(path, 1, path.read_text(encoding="utf-8"))]
    strings = iterate_strings(parse(path))
    return [Text(path, line, text) for line, text in strings if " " in text.strip()]


def split_sentences(text: str) -> list[str]:
    return [" ".join(part.split()) for part in _SENTENCE_END.split(text) if part.strip()]


def is_prose(text: str) -> bool:
    """Whether a long string is made of sentences, not of code, names or patterns."""
    if not re.search(r"[.,;:!?]", text):
        return False
    words = text.split()
    plain = [word for word in words if re.fullmatch(r"[A-Za-z'’`\"(]+[.,:;)`\"]*", word)]
    return not _CODE.search(text) and len(plain) > 0.6 * len(words)


def find_offences(text: Text) -> Iterator[Offence]:
    flat = " ".join(_CODE_SPAN.sub("`X`", text.text).lower().split())
    if join_phrases().search(flat):
        for pattern, instead in read_phrases():
            if found := pattern.search(flat):
                yield Offence(text, f"{found[0]!r}; instead: {instead}")
    if text.path.suffix == ".md" or (len(flat) <= MAX_CHARS and len(flat.split()) <= MAX_WORDS):
        return
    if not is_prose(text.text):
        return
    for sentence in split_sentences(text.text):
        words = len(_WORD.findall(sentence))
        if len(sentence) > MAX_CHARS or words > MAX_WORDS:
            yield Offence(text, f"{words} words, {len(sentence)} characters: {sentence[:60]!r} …")


@cache
def collect_offences() -> dict[str, list[Offence]]:
    """The offences of every module and prompt that has some."""
    with without_collector():
        found = {
            shorten(path): [offence for text in list_texts(path) for offence in find_offences(text)]
            for path in (*MODULES, *PROMPTS)
        }
    return {name: offences for name, offences in found.items() if offences}


def read_exempt() -> set[str]:
    return set(TO_REWRITE.read_text().splitlines()) if TO_REWRITE.exists() else set()


def test_texts_are_plain_and_short():
    exempt = read_exempt()
    found = [
        str(offence)
        for name, offences in collect_offences().items()
        if name not in exempt
        for offence in offences
    ]
    assert not found, "rewrite these texts:\n" + "\n".join(found)


def test_no_plain_file_is_on_the_list_of_files_to_rewrite():
    done = sorted(read_exempt() - set(collect_offences()))
    assert done == [], "run `scripts/plain-texts --update`"


def test_the_check_finds_what_it_looks_for():
    text = "The server is told of it, whoever asks, so long as 3 is no file."
    problems = [offence.problem for offence in find_offences(Text(SOURCE / "a.py", 1, text))]
    assert len(problems) == 4
    long = Text(SOURCE / "a.py", 1, "word " * 31 + ".")
    assert [offence.problem.split(",")[0] for offence in find_offences(long)] == ["31 words"]
    assert not list(find_offences(Text(SOURCE / "a.py", 1, "Timeout must be positive.")))


if __name__ == "__main__":
    remaining = collect_offences()
    if "--update" in sys.argv:
        keep = sorted(set(remaining) & read_exempt()) if TO_REWRITE.exists() else sorted(remaining)
        TO_REWRITE.write_text("".join(f"{name}\n" for name in keep))
    chosen = tuple(name for name in sys.argv[1:] if not name.startswith("--"))
    for name, offences in remaining.items():
        if not chosen or name.startswith(chosen):
            sys.stdout.writelines(f"{offence}\n" for offence in offences)
    total = sum(map(len, remaining.values()))
    sys.stdout.write(f"{total} offences in {len(remaining)} files\n")
