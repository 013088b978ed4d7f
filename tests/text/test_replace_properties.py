"""The replacement against a slow second opinion that reads the rules literally, span by span."""

from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from handaxe.text.encoding import Format, encode
from handaxe.text.replace import (
    AmbiguousMatch,
    EmptyNeedle,
    NoPlace,
    NotText,
    SameText,
    UnencodableCharacter,
    plan_replacement,
)
from handaxe.text.replace.find import MatchSearch
from handaxe.text.replace.haystack import Haystack

REFUSALS = (SameText, EmptyNeedle, NoPlace, AmbiguousMatch, UnencodableCharacter, NotText)
SIGNS = {"’": "'", "“": '"', "”": '"', "–": "-", "\u00a0": " "}
ALPHABET = "ab \t\n\r'’–-"

small = st.text(alphabet=ALPHABET, max_size=12)
pieces = st.sampled_from(
    [
        "a",
        "b",
        "\n",
        "\r\n",
        "\r",
        " ",
        "  ",
        "\t",
        "    ",
        "'",
        "’",
        '"',
        "“",
        "–",
        "-",
        "é",
        "{",
        "日",
    ]
)
documents = st.lists(pieces, max_size=30).map("".join)


def smoothed(text: str, breaks_at_cr: bool) -> str:
    plain = text.replace("\r\n", "\n")
    return plain.replace("\r", "\n") if breaks_at_cr else plain


def signless(text: str) -> str:
    return "".join(SIGNS.get(character, character) for character in text)


def blanks_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


class CrossCheck:
    """Every span of a short text, asked whether it fits."""

    def __init__(self, text: str, old: str) -> None:
        self.text = text
        self.cr = "\n" not in text and "\r" in text
        self.raw = old
        self.old = smoothed(old, self.cr)
        self.lines = self.old.split("\n")

    def spans(self, kind: str) -> list[tuple[int, int]]:
        if kind not in ("exact", "line_endings") and signless(self.old).isspace():
            return []
        fits = getattr(self, kind)
        size = len(self.text) + 1
        spans = [(b, e) for b in range(size) for e in range(b, size) if fits(b, e)]
        if kind == "exact":
            return [(b - 1 if self.raw[0] == "\n" and self.inside(b) else b, e) for b, e in spans]
        return spans

    def inside(self, position: int) -> bool:
        return position > 0 and self.text[position - 1 : position + 1] == "\r\n"

    def whole(self, begin: int, end: int) -> bool:
        return not self.inside(begin) and not self.inside(end)

    def at_line_start(self, position: int) -> bool:
        return position == 0 or self.text[position - 1] in ("\n", "\r" if self.cr else "\n")

    def at_line_end(self, position: int) -> bool:
        rest = self.text[position:]
        return not rest or rest.startswith(("\n", "\r\n", "\r" if self.cr else "\n"))

    def exact(self, begin: int, end: int) -> bool:
        return self.text[begin:end] == self.raw

    def line_endings(self, begin: int, end: int) -> bool:
        return self.whole(begin, end) and smoothed(self.text[begin:end], self.cr) == self.old

    def trailing_blanks(self, begin: int, end: int) -> bool:
        stored = smoothed(self.text[begin:end], self.cr).split("\n")
        if not self.whole(begin, end) or len(stored) != len(self.lines):
            return False
        if any(a.rstrip(" \t") != b.rstrip(" \t") for a, b in zip(stored, self.lines, strict=True)):
            return False
        # The span is as short as it can be where blanks alone stand at its edge.
        if not self.lines[0].rstrip(" \t") and len(stored) > 1 and stored[0]:
            return False
        if self.lines[-1].endswith((" ", "\t")):
            return self.at_line_end(end)
        return stored[-1] == self.lines[-1]

    def indentation(self, begin: int, end: int) -> bool:
        stored = smoothed(self.text[begin:end], self.cr).split("\n")
        if not self.whole(begin, end) or len(stored) != len(self.lines):
            return False
        starts = self.at_line_start(begin) if self.lines[0] else not stored[0]
        ends = self.at_line_end(end) if self.lines[-1] else not stored[-1]
        if not starts or not ends:
            return False
        pairs = set()
        for mine, theirs in zip(self.lines, stored, strict=True):
            if mine.lstrip(" \t") != theirs.lstrip(" \t"):
                return False
            if mine.strip(" \t"):
                pairs.add((blanks_of(mine), blanks_of(theirs)))
        if len({a for a, _ in pairs}) < len(pairs) or len({b for _, b in pairs}) < len(pairs):
            return False
        return any(
            all(
                a < c and b < d
                for (a, b), (c, d) in pairwise(
                    sorted((len(x.expandtabs(s)), len(y.expandtabs(t))) for x, y in pairs)
                )
            )
            for s in (2, 4, 8)
            for t in (2, 4, 8)
        )

    def quotes(self, begin: int, end: int) -> bool:
        stored = signless(smoothed(self.text[begin:end], self.cr))
        return self.whole(begin, end) and stored == signless(self.old)

    def verdict(self) -> tuple[str, list[tuple[int, int]]] | None:
        for kind in ("exact", "line_endings", "trailing_blanks", "indentation", "quotes"):
            if spans := self.spans(kind):
                return kind, spans
        return None


def found(text: str, old: str, encoding: str) -> tuple[str, list[tuple[int, int]]] | None:
    haystack = Haystack.of(text.encode(encoding), Format(encoding))
    try:
        search = MatchSearch(haystack, old, "visible")
    except NoPlace:
        return None
    places = list(search._places)
    if encoding != "utf-8":
        return search.matched_with, [(place.begin, place.end) for place in places]
    data = text.encode()
    return search.matched_with, [
        (len(data[: place.begin].decode()), len(data[: place.end].decode())) for place in places
    ]


@settings(max_examples=600)
@given(small, small.filter(bool), st.sampled_from(["utf-8", "utf-16-le"]))
def test_places_are_those_a_literal_reading_finds(text: str, old: str, encoding: str) -> None:
    assert found(text, old, encoding) == CrossCheck(text, old).verdict()


@settings(max_examples=600)
@given(st.data(), documents.filter(bool), st.sampled_from(["utf-8", "utf-16-le"]))
def test_distorted_parts_of_a_text_are_judged_by_the_rules(
    data: st.DataObject, text: str, encoding: str
) -> None:
    begin = data.draw(st.integers(0, len(text) - 1))
    old = text[begin : data.draw(st.integers(begin + 1, len(text)))]
    one, other = data.draw(
        st.sampled_from(
            [("\r\n", "\n"), ("\n", "\r\n"), ("\t", "    "), ("    ", "\t"), ("’", "'"), ("'", "’"),
             ("\n", " \n"), (" ", ""), ("“", '"'), ("–", "-"), ("a", "a")]
        )
    )  # fmt: skip
    old = old.replace(one, other)
    assume(old)
    assert found(text, old, encoding) == CrossCheck(text, old).verdict()


@settings(max_examples=400)
@given(documents, documents, documents, st.booleans(), st.sampled_from(["exact", "visible"]))
def test_nothing_outside_the_splices_changes_and_only_known_refusals_are_raised(
    content: str, old: str, new: str, replace_all: bool, tolerance
) -> None:
    data = content.encode()
    try:
        made = plan_replacement(data, old, new, replace_all=replace_all, tolerance=tolerance)
    except REFUSALS:
        return
    after = made.apply(data)
    assert after != data
    position = shift = 0
    for splice in made.splices:
        assert position <= splice.start <= splice.end
        assert after[position + shift : splice.start + shift] == data[position : splice.start]
        shift += len(splice.data) - (splice.end - splice.start)
        position = splice.end
    assert after[position + shift :] == data[position:]
    after.decode()


@given(st.binary(max_size=60), st.text(max_size=8), st.text(max_size=8), st.booleans())
def test_any_bytes_and_any_strings_end_in_a_plan_or_a_known_refusal(
    content: bytes, old: str, new: str, replace_all: bool
) -> None:
    try:
        made = plan_replacement(content, old, new, replace_all=replace_all)
    except REFUSALS:
        return
    assert made.places >= 1


@given(
    st.text(alphabet="ab \n\\1g<>$.*é", max_size=20),
    st.text(alphabet="ab \n\\.*é", max_size=4),
    st.text(alphabet="ab \n\\1g<>$.*é", max_size=20),
    st.text(alphabet="ab \n\\1g<0>$é", max_size=8),
)
def test_a_unique_exact_match_is_a_plain_replacement(
    before: str, middle: str, after: str, new: str
) -> None:
    old = f"Q{middle}"
    content = before + old + after
    made = plan_replacement(content.encode(), old, new)
    assert made.matched_with == "exact"
    assert made.apply(content.encode()).decode() == before + new + after
    everywhere = plan_replacement(content.encode(), old, new, replace_all=True)
    assert everywhere.splices == made.splices


@given(
    st.text(alphabet="ab\n日é", max_size=20),
    st.text(alphabet="ab\n日é", min_size=1, max_size=3),
    st.text(alphabet="ab\n日é", max_size=20),
    st.text(alphabet="ab\n日é", max_size=4),
)
def test_replace_all_is_what_a_string_would_do(before: str, old: str, after: str, new: str) -> None:
    assume(old != new)
    content = before + old + after
    made = plan_replacement(content.encode(), old, new, replace_all=True)
    assert made.apply(content.encode()).decode() == content.replace(old, new)
    assert made.places == content.count(old)


@given(
    st.lists(st.sampled_from(["x", "y", "  z", "\tw", ""]), min_size=1, max_size=8),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_a_file_with_one_kind_of_ending_keeps_one_kind(
    lines: list[str], stored: str, in_old: str, in_new: str
) -> None:
    content = stored.join(["head", "first", "second", *lines, "tail"]) + stored
    old, new = in_old.join(["first", "second"]), in_new.join(["first", "new", "second"])
    after = plan_replacement(content.encode(), old, new).apply(content.encode()).decode()
    assert after == stored.join(["head", "first", "new", "second", *lines, "tail"]) + stored


@given(
    documents,
    documents.filter(bool),
    documents,
    st.sampled_from(["utf-8-sig", "utf-16", "utf-32", "utf-16-be"]),
)
def test_the_encoding_makes_no_difference_to_the_text(
    content: str, old: str, new: str, encoding: str
) -> None:
    marks = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le"}
    mark = "\ufeff".encode(marks.get(encoding, encoding))
    stored = Format(marks.get(encoding, encoding), mark)
    outcomes = []
    for data, form in ((content.encode(), Format()), (encode(content, stored), stored)):
        try:
            made = plan_replacement(data, old, new)
        except REFUSALS as refusal:
            outcomes.append(type(refusal))
        else:
            text = made.apply(data)[len(form.bom) :].decode(form.encoding)
            outcomes.append((made.matched_with, text))
    assert outcomes[0] == outcomes[1]


@given(documents, documents.filter(bool), documents)
def test_an_applied_edit_undone_gives_the_file_back(content: str, old: str, new: str) -> None:
    data = content.encode()
    try:
        made = plan_replacement(data, old, new, tolerance="exact")
        after = made.apply(data)
        back = plan_replacement(after, new, old, tolerance="exact").apply(after)
    except REFUSALS:
        return
    # Where all line breaks are of one kind, nothing is lost on the way.
    if "\r" not in content + old + new:
        assert back == data


@pytest.mark.parametrize("size", [1, 63, 64, 65, 200])
def test_many_places_of_the_telling_piece_make_no_difference(size: int) -> None:
    content = "".join(f"\tcall({n})\r\n\tend\r\n" for n in range(size))
    old = f"    call({size - 1})\n    end\n"
    after = plan_replacement(content.encode(), old, "    last\n").apply(content.encode()).decode()
    assert after == content.replace(f"\tcall({size - 1})\r\n\tend\r\n", "\tlast\r\n")
