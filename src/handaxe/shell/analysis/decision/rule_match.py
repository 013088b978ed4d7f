"""Match Bash rules against parts of a command.

Allow rules match the source text; deny and ask rules match everything a part could run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from handaxe.shell.analysis.facts import CommandPart, MatchText, PossibleCommand
from handaxe.shell.analysis.parser.cross_check import find_occurrences
from handaxe.shell.analysis.paths import is_inside
from handaxe.shell.analysis.program_tables import (
    compare_names,
    get_base_name,
    strip_digits,
    strip_version,
)
from handaxe.shell.analysis.programs.subcommands import is_flag
from handaxe.shell.analysis.programs.wrappers import get_program_name

Hit = Literal["no", "maybe", "yes"]

UNKNOWN = "\ue000"
"""An argument that is unknown before the command runs."""

_BLANKS = re.compile(r"[ \t\n]+")
_VOID = frozenset({"watch", "setsid", "ionice", "flock"})
_QUOTES = re.compile(r"['\"\\]")
_TEXT_LIMIT = 512


class Pattern(Struct, frozen=True):
    """A compiled specifier: the text before the first star, and a regex for the whole."""

    text: str
    everything: bool
    has_star: bool
    head: str
    program: str
    """Its first word."""
    regex: re.Pattern[str]


@lru_cache(maxsize=4096)
def compile_specifier(specifier: str) -> Pattern:
    """The pattern of `Bash(specifier)`; an empty specifier or `*` matches every command."""
    text = _BLANKS.sub(" ", specifier.strip())
    body = text[:-2] + " *" if text.endswith(":*") else text
    prefix = body.endswith(" *")
    stem = body[:-2] if prefix else body
    expression = ".*".join(re.escape(piece) for piece in stem.split("*"))
    regex = re.compile(expression + (r"(?: .*)?" if prefix else ""), re.DOTALL)
    head = stem.partition("*")[0]
    program = text.partition(" ")[0].removesuffix(":*")
    return Pattern(text, text in ("", "*"), "*" in body, head, program, regex)


def can_any_allow(specifiers: tuple[str, ...], part: CommandPart) -> bool:
    """Quick check whether any allow rule can match."""
    joined = build_rule_set(specifiers).any_text
    if joined is None or not part.rule_texts:
        return False
    lead = f"{part.assignments} " if part.assignments else ""
    for reading in part.rule_texts[0]:
        text = reading.text
        texts = (text, f"{text} {part.redirect_text}", f"{lead}{text}")
        if any(joined.fullmatch(item) for item in texts):
            return True
    return False


def is_allowed_by(specifier: str, part: CommandPart, dirs: tuple[str, ...] = ()) -> bool:
    """Whether an allow rule covers `part` in every state; redirections are judged elsewhere.

    Global options of git are ignored; `-C` only if it stays inside `dirs`.
    """
    pattern = compile_specifier(specifier)
    if pattern.everything:
        return True
    if not part.rule_texts:
        return False
    if not part.is_prefix_harmless:
        # The rule must spell the assignments itself.
        lead = f"{part.assignments} "
        is_spelled = pattern.head.startswith(lead)
        return is_spelled and bool(pattern.regex.fullmatch(f"{lead}{part.squeezed}"))
    return all(
        any(_is_covered(pattern, reading, part, dirs) for reading in readings)
        for readings in part.rule_texts
    )


def _is_covered(
    pattern: Pattern, reading: MatchText, part: CommandPart, dirs: tuple[str, ...]
) -> bool:
    program, text = reading.program, reading.text
    if program is None or not all(_is_inside_any(place, dirs) for place in reading.goes):
        return False
    full = f"{text} {part.redirect_text}" if part.redirect_text else text
    if not pattern.regex.fullmatch(text) and not pattern.regex.fullmatch(full):
        return False
    if not pattern.has_star:
        return True
    if "/" in program and not pattern.head.startswith(program):
        return False
    if program.rpartition("/")[2] in _VOID:
        return False
    # A prefix does not cover an option that runs another program, unless it contains the option.
    return not reading.runs or reading.runs.partition("=")[0] in pattern.head.split(" ")


def _is_inside_any(place: str | None, dirs: tuple[str, ...]) -> bool:
    return place is not None and any(is_inside(place, root) for root in dirs)


@lru_cache(maxsize=256)
def collapse_blanks(text: str) -> str:
    """Replace runs of blanks by one; lines stay separate."""
    return re.sub(r"[ \t]+", " ", text.strip())


def is_everything(specifier: str) -> bool:
    """Whether a specifier covers every command."""
    return compile_specifier(specifier).everything


def is_exact(specifier: str) -> bool:
    """Whether a specifier covers exactly one command text."""
    pattern = compile_specifier(specifier)
    return not pattern.everything and not pattern.has_star


class RuleSet(Struct):
    """Many specifiers in one regex, so that a miss costs one match."""

    specifiers: tuple[str, ...]
    any_text: re.Pattern[str] | None
    programs: frozenset[str]
    """First words of rules, for unknown arguments."""

    def can_match_part(self, part: CommandPart) -> bool:
        """Quick check whether any rule can match the part."""
        if self.any_text is None:
            return False
        if part.mentions or part.unread:
            return True
        texts = [_BLANKS.sub(" ", part.text)]
        texts += [part.squeezed] if part.squeezed is not None else []
        if any(self.any_text.fullmatch(text) for text in texts):
            return True
        return any(self._can_match_command(command, self.any_text) for command in part.commands)

    def _can_match_command(self, command: PossibleCommand, any_text: re.Pattern[str]) -> bool:
        values = _list_values(command)
        is_open = UNKNOWN in values or any(_is_option(value) for value in values[1:])
        program = command.program or ""
        known = {values[0], program, strip_version(program), strip_digits(program)}
        if not known.isdisjoint(self.programs) and (is_open or program not in self.programs):
            return True
        if any(strip_digits(name) == program for name in self.programs):
            return True
        return any(any_text.fullmatch(text) for text in _list_texts(values))


@lru_cache(maxsize=64)
def build_rule_set(specifiers: tuple[str, ...]) -> RuleSet:
    """Build the set of some rules."""
    patterns = [compile_specifier(item) for item in specifiers]
    readings = [regex.pattern for item in patterns for regex in _list_readings(item)]
    if any(item.everything for item in patterns):
        readings.append(".*")
    joined = (
        re.compile("|".join(f"(?:{text})" for text in readings), re.DOTALL) if readings else None
    )
    first = frozenset(item.program for item in patterns)
    return RuleSet(specifiers, joined, first)


def match_rule(specifier: str, part: CommandPart) -> Hit:
    """Whether a deny or ask rule covers anything `part` could run."""
    pattern = compile_specifier(specifier)
    if pattern.everything:
        return "yes"
    if part.squeezed is not None and _is_text_match(pattern, part.squeezed):
        return "yes"
    if part.kind == "simple" and _is_text_match(pattern, _BLANKS.sub(" ", part.text)):
        return "yes"
    best: Hit = "no"
    for command in (*part.commands, *_find_mentioned_commands(pattern, part)):
        found = _match_command(pattern, command)
        if found == "yes":
            return "yes"
        best = found if found != "no" else best
    return "maybe" if best == "no" and _is_mentioned(pattern, part) else best


def _find_mentioned_commands(pattern: Pattern, part: CommandPart) -> Iterator[PossibleCommand]:
    """Occurrences of a rule's program in unparsed texts of any length."""
    program = frozenset({pattern.program})
    for text in part.unread:
        for fields in find_occurrences(text, program):
            yield PossibleCommand(tuple(fields), certain=True, program=get_program_name(fields[0]))


def _is_mentioned(pattern: Pattern, part: CommandPart) -> bool:
    """Whether the rule's words occur in order among words that may name a program."""
    words = [word for word in _strip_quotes(pattern.head).split(" ") if word]
    if not words:
        return False
    return any(_has_words_in_order(words, tokens) for tokens in part.mentions)


def _has_words_in_order(words: list[str], tokens: tuple[str, ...]) -> bool:
    at = 0
    for token in tokens:
        is_next = _is_program_mention(token, words[0]) if at == 0 else token == words[at]
        if is_next:
            at += 1
            if at == len(words):
                return True
    return False


def _is_program_mention(token: str, program: str) -> bool:
    """Whether a word is a program's name, a path to it, or an option with it: `-xrm`."""
    if program not in token and strip_digits(program) not in token:
        return False
    if compare_names(program, get_base_name(token)) != "no":
        return True
    return token[0] == "-" and token[1:2] != "-" and token[2:].endswith(program)


def _is_text_match(pattern: Pattern, text: str) -> bool:
    return bool(pattern.regex.fullmatch(text))


def _match_command(pattern: Pattern, command: PossibleCommand) -> Hit:
    values = _list_values(command)
    texts = _list_texts(values)
    is_same = compare_names(get_base_name(pattern.program), command.program or "")
    if is_same != "no":
        # The rule's own name in place of another version's.
        texts = texts | {" ".join([get_base_name(pattern.program), *values[1:]])}
    for regex in _list_readings(pattern):
        if any(regex.fullmatch(text) for text in texts):
            return "yes" if command.certain and is_same != "maybe" else "maybe"
    open_ended = UNKNOWN in values[1:] and values[0] != UNKNOWN
    if open_ended and any(_can_match(pattern, text) for text in texts):
        return "maybe"
    return "maybe" if _is_hidden(pattern, command, values) else "no"


def _is_option(value: str) -> bool:
    return value.startswith(("-", "+"))


def _is_hidden(pattern: Pattern, candidate: PossibleCommand, values: list[str]) -> bool:
    """Whether only options and their possible values separate the rule's words."""
    words = pattern.head.split(" ")
    if len(words) < 2 or words[0] != candidate.program or not words[-1]:
        return False
    places, may_be_value = {1}, False
    for index, value in enumerate(values[1:], start=1):
        following: set[int] = set()
        for place in places:
            if value == words[place]:
                following.add(place + 1)
            if _is_option(value) or may_be_value or value == UNKNOWN:
                following.add(place)
        if len(words) in following and (pattern.has_star or index == len(values) - 1):
            return True
        places = following - {len(words)}
        may_be_value = _is_option(value) and not is_flag(candidate.program, value)
    return False


def _list_values(candidate: PossibleCommand) -> list[str]:
    return [field.value if field.kind == "known" else UNKNOWN for field in candidate.fields]


def _list_texts(values: list[str]) -> set[str]:
    """The candidate's texts, with and without the program's directory."""
    plain = " ".join(values)
    texts = {plain, _BLANKS.sub(" ", plain)}
    if "/" in values[0]:
        texts.add(" ".join([values[0].rstrip("/").rpartition("/")[2], *values[1:]]))
    return texts


def _strip_quotes(text: str) -> str:
    return _QUOTES.sub("", text)


@lru_cache(maxsize=4096)
def _list_bare_readings(text: str) -> tuple[re.Pattern[str], ...]:
    """The rule without its quotes and without its program's directory."""
    bare = _strip_quotes(text)
    first, blank, rest = bare.partition(" ")
    texts = {bare, first.rpartition("/")[2] + blank + rest}
    return tuple(compile_specifier(item).regex for item in sorted(texts) if item)


def _list_readings(pattern: Pattern) -> tuple[re.Pattern[str], ...]:
    if any(char in pattern.text for char in "'\"\\/"):
        return (pattern.regex, *_list_bare_readings(pattern.text))
    return (pattern.regex,)


def _can_match(pattern: Pattern, text: str) -> bool:
    """Whether some value of the unknown arguments would make the rule match."""
    program = text.partition(" ")[0]
    first = pattern.text.partition(" ")[0].removesuffix(":*")
    if "*" in first or first != program:
        return False
    rule = re.sub(r"(:\*| \*)$", f"{UNKNOWN}", pattern.text).replace("*", UNKNOWN)
    return _intersect(rule[:_TEXT_LIMIT], text[:_TEXT_LIMIT])


def _intersect(left: str, right: str) -> bool:
    """Whether two texts with wildcards have a text in common."""
    row = {0}
    for at in range(len(left) + 1):
        row = _skip_wildcards(left, right, at, row)
        if len(right) in row and at == len(left):
            return True
        if at == len(left):
            return False
        row = _advance(left[at], right, row)
    return False


def _skip_wildcards(_left: str, right: str, _at: int, row: set[int]) -> set[int]:
    """Positions that are reachable if wildcards on the right match nothing."""
    out: set[int] = set()
    for start in row:
        at = start
        out.add(at)
        while at < len(right) and right[at] == UNKNOWN:
            at += 1
            out.add(at)
    return out


def _advance(char: str, right: str, row: set[int]) -> set[int]:
    if char == UNKNOWN:
        return set(range(min(row), len(right) + 1)) if row else set()
    out: set[int] = set()
    for at in row:
        if at < len(right):
            if right[at] == UNKNOWN:
                out.add(at)
            if right[at] == char:
                out.add(at + 1)
        if at > 0 and right[at - 1] == UNKNOWN:
            out.add(at)
    return out
