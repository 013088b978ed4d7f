"""Find and replace text in a file: an exact match first, then five named kinds of tolerance.

`plan` returns which bytes to remove and what to insert; all other bytes stay as they are. There
is no similarity score: text matches in one of the named ways or not at all, and two matches are
a refusal. Refusals are exceptions with data; the tool writes the sentences.

Belongs here: matching, normalising, adapting the replacement to the file, patches, line edits,
the fuzzy match and the corrections that help after a failed edit.
Does not: reading and writing files (`disk`), texts for the model (`tools.files`).
May import: the other modules of `text`, and what `text` may import.
"""

from handaxe.text.encoding import Format, NotText, UnencodableCharacter, is_empty, sniff
from handaxe.text.replace.adapt import ReplacementAdapter
from handaxe.text.replace.find import MatchSearch
from handaxe.text.replace.haystack import Haystack
from handaxe.text.replace.plan import (
    AmbiguousMatch,
    ByteSplice,
    EmptyNeedle,
    MatchedWith,
    NoPlace,
    Plan,
    SameText,
    Tolerance,
)

__all__ = [
    "AmbiguousMatch",
    "ByteSplice",
    "EmptyNeedle",
    "MatchedWith",
    "NoPlace",
    "NotText",
    "Plan",
    "SameText",
    "Tolerance",
    "UnencodableCharacter",
    "is_already_applied",
    "is_empty",
    "plan_replacement",
]


def plan_replacement(
    content: bytes,
    old: str,
    new: str,
    *,
    replace_all: bool = False,
    tolerance: Tolerance = "visible",
    stored: Format | None = None,
) -> Plan:
    """How to put `new` where `old` is in `content`.

    Args:
        content: The whole file.
        old: What to find; never empty.
        new: What to put there.
        replace_all: Every place of the class that decides, instead of exactly one.
        tolerance: `exact` takes no class but the first.
        stored: The format of `content` where the caller knows it already.

    Raises:
        SameText: Nothing would change.
        EmptyNeedle: `old` is empty.
        NoPlace: No place fits.
        AmbiguousMatch: Several places fit, and only one was asked for.
        CannotEncode: The file's encoding cannot hold `new`.
        NotText: `content` is binary.
    """
    if old == new:
        raise SameText
    if not old:
        raise EmptyNeedle
    haystack = Haystack.of(content, stored or sniff(content))
    search = MatchSearch(haystack, old, tolerance)
    matched_with = search.matched_with
    places = search.find_all_places() if replace_all else (search.find_only(),)
    splices = tuple(ReplacementAdapter(haystack, old, new, matched_with).splices(places))
    if all(content[splice.start : splice.end] == splice.data for splice in splices):
        raise SameText
    return Plan(
        splices=splices,
        matched_with=matched_with,
        encoding=haystack.stored.encoding,
        places=len(splices),
    )


def is_already_applied(content: bytes, old: str, new: str, *, stored: Format | None = None) -> bool:
    """Whether `old` is gone and `new`, if it is long enough, occurs exactly once."""
    if len("".join(new.split())) < 3 or not any(map(str.isalnum, new)) or not old:
        return False
    haystack = Haystack.of(content, stored or sniff(content))
    try:
        MatchSearch(haystack, old, "visible")
    except NoPlace:
        pass
    else:
        return False
    try:
        MatchSearch(haystack, new, "visible").find_only()
    except (NoPlace, AmbiguousMatch):
        return False
    return True
