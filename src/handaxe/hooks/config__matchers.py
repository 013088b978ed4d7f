"""Which tools, reasons or names a group of hooks is meant for."""

import re
from collections.abc import Callable, Iterable

Fits = Callable[[Iterable[str]], bool]
"""Whether one of these names is meant."""

_PLAIN = re.compile(r"[A-Za-z0-9_\- ,|]*")
_WORDS = re.compile(r"[A-Za-z0-9_|]*")
_NAMED_GROUP = re.compile(r"(?<!\\)\(\?<(?=[A-Za-z_])")
MAX_SUBJECT_CHARS = 200
"""A name longer than this is nobody's; a pattern is not let loose on it."""


def compile_matcher(text: str | None, *, literal: bool = False) -> Fits:
    """Read a matcher: nothing or `*` for all, names with `|` or `,`, or else a pattern.

    Raises:
        ValueError: it is neither names nor a pattern.
    """
    if not text or text == "*":
        return _match_all
    if literal and _WORDS.fullmatch(text):
        return _match_names(text.split("|"))
    if not literal and _PLAIN.fullmatch(text):
        return _match_names(re.split(r"[|,]", text))
    try:
        pattern = re.compile(_NAMED_GROUP.sub("(?P<", text), re.ASCII)
    except (re.error, RecursionError, OverflowError) as error:
        if literal:
            # The names of files hold all kinds of signs.
            return _match_names(text.split("|"))
        raise ValueError(f"{text!r} is not a pattern: {error}") from None

    def fits(names: Iterable[str]) -> bool:
        return any(pattern.search(name[:MAX_SUBJECT_CHARS]) for name in names)

    return fits


def _match_names(parts: Iterable[str]) -> Fits:
    wanted = frozenset(part.strip() for part in parts) - {""}

    def fits(names: Iterable[str]) -> bool:
        return not wanted.isdisjoint(names)

    return fits


def _match_all(names: Iterable[str]) -> bool:  # noqa: ARG001 - every name is meant
    return True
