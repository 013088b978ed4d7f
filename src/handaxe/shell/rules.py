"""Matching Bash rules against parts of a command.

Allow looks at the source text and through a few transparent wrappers only; deny and ask look at
everything a part could run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from handaxe.shell.danger import Candidate, Danger
from handaxe.shell.fields import Field, fields_of
from handaxe.shell.flow import Part, State
from handaxe.shell.places import is_inside, resolve
from handaxe.shell.prove import unwrap_proven
from handaxe.shell.secrets import is_harmless_prefix
from handaxe.shell.subcommands import PLAIN_GIT_GLOBALS, takes_no_value
from handaxe.shell.syntax import Simple, Word

UNKNOWN = "\ue000"
"""Stands for an argument that is not known before the command runs."""

_BLANKS = re.compile(r"[ \t\n]+")
_VOID = frozenset({"watch", "setsid", "ionice", "flock"})
_FIND_ACTIONS = ("-exec", "-ok", "-delete", "-fprint", "-fls")
_PLAIN_WRAPPERS = frozenset({"xargs", "nohup", "noglob"})
_TRANSPARENT = _PLAIN_WRAPPERS | {"timeout", "time", "nice", "stdbuf", "command", "builtin"}
_TEXT_LIMIT = 512


class Pattern(Struct, frozen=True):
    """A rule's specifier made ready: the text before the first star, and the whole as a regex."""

    text: str
    everything: bool
    has_star: bool
    head: str
    regex: re.Pattern[str]


@lru_cache(maxsize=4096)
def compile_specifier(specifier: str) -> Pattern:
    """The pattern of `Bash(specifier)`; an empty specifier or `*` means every command."""
    text = _BLANKS.sub(" ", specifier.strip())
    body = text[:-2] + " *" if text.endswith(":*") else text
    prefix = body.endswith(" *")
    stem = body[:-2] if prefix else body
    expression = ".*".join(re.escape(piece) for piece in stem.split("*"))
    regex = re.compile(expression + (r"(?: .*)?" if prefix else ""), re.DOTALL)
    head = stem.partition("*")[0]
    return Pattern(text, text in ("", "*"), "*" in body, head, regex)


def squeeze(words: Iterable[Word]) -> str:
    """The source text of words with one blank between them and continued lines joined."""
    return " ".join(
        word.text if "'" in word.text else word.text.replace("\\\n", "") for word in words
    )


def may_allow(specifiers: tuple[str, ...], part: Part, dirs: tuple[str, ...] = ()) -> bool:
    """Whether looking at allow rules one by one can find anything."""
    node = part.node
    joined = rule_set(specifiers).any_text
    if joined is None or not isinstance(node, Simple) or not node.words:
        return False
    lead = [item.text for item in node.assignments]
    tail = [item.text for item in node.redirects]
    for words in _transparent(node.words, part.states[0], dirs):
        text = squeeze(words)
        texts = (text, " ".join([text, *tail]), " ".join([*lead, text]))
        if any(joined.fullmatch(item) for item in texts):
            return True
    return False


def allows(specifier: str, part: Part, dirs: tuple[str, ...] = ()) -> bool:
    """Whether an allow rule covers `part` in every state; redirections are judged elsewhere.

    A global option of git is seen through; `-C` only to a place inside `dirs`.
    """
    pattern = compile_specifier(specifier)
    if pattern.everything:
        return True
    node = part.node
    if not isinstance(node, Simple) or not node.words:
        return False
    return all(_allows_in(pattern, node, state, dirs) for state in part.states)


def _allows_in(pattern: Pattern, node: Simple, state: State, dirs: tuple[str, ...]) -> bool:
    harmless = all(
        item.value is not None and is_harmless_prefix(item.name, item.value.literal)
        for item in node.assignments
    )
    if not harmless:
        # The rule must spell the assignments itself.
        text = " ".join([*(item.text for item in node.assignments), squeeze(node.words)])
        lead = " ".join(item.text for item in node.assignments) + " "
        return pattern.head.startswith(lead) and bool(pattern.regex.fullmatch(text))
    return any(_covers(pattern, words, node) for words in _transparent(node.words, state, dirs))


def _covers(pattern: Pattern, words: list[Word], node: Simple) -> bool:
    program = words[0].literal
    if program is None or words[0].has_glob:
        return False
    text = squeeze(words)
    full = " ".join([text, *(item.text for item in node.redirects)])
    if not pattern.regex.fullmatch(text) and not pattern.regex.fullmatch(full):
        return False
    if not pattern.has_star:
        return True
    if "/" in program and not pattern.head.startswith(program):
        return False
    name = program.rpartition("/")[2]
    if name in _VOID:
        return False
    return name != "find" or not any(_may_act(word) for word in words[1:])


def _may_act(word: Word) -> bool:
    if word.literal is not None:
        return word.literal.startswith(_FIND_ACTIONS)
    return word.has_brace or word.pieces[0].kind != "text" or word.pieces[0].text.startswith("-")


def _transparent(words: list[Word], state: State, dirs: tuple[str, ...]) -> list[list[Word]]:
    """The command as written, inside each transparent wrapper, and without global options."""
    found = _unwrapped(words, state.variables)
    bare = _without_git_globals(found[-1], state, dirs)
    return [*found, bare] if bare is not None else found


def _without_git_globals(
    words: list[Word], state: State, dirs: tuple[str, ...]
) -> list[Word] | None:
    """`git -C DIR log` as `git log`, if DIR lies inside the working directories."""
    if words[0].literal != "git":
        return None
    at = 1
    while at < len(words):
        option = words[at].literal
        target = words[at + 1].literal if at + 1 < len(words) else None
        if option == "-C" and target and _stays_inside(target, state.cwds, dirs):
            at += 2
        elif option in PLAIN_GIT_GLOBALS:
            at += 1
        else:
            break
    return [words[0], *words[at:]] if 1 < at < len(words) else None


def _stays_inside(target: str, cwds: frozenset[str], dirs: tuple[str, ...]) -> bool:
    bases = cwds or (frozenset({"/"}) if target.startswith("/") else frozenset[str]())
    places = [resolve(target, base) for base in bases]
    return bool(places) and all(any(is_inside(p, root) for root in dirs) for p in places)


def _unwrapped(words: list[Word], variables: dict[str, Field | None]) -> list[list[Word]]:
    found = [words]
    for _ in range(4):
        program = words[0].literal
        if program not in _TRANSPARENT or len(words) < 2:
            break
        if program in _PLAIN_WRAPPERS:
            inner = words[1:] if not (words[1].literal or "-").startswith("-") else []
        else:
            fields = [field for word in words for field in fields_of(word, variables)]
            if len(fields) != len(words):
                break
            rest = unwrap_once(fields)
            inner = words[len(words) - len(rest) :] if len(rest) < len(words) else []
        if not inner:
            break
        words = inner
        found.append(words)
    return found


def unwrap_once(fields: list[Field]) -> list[Field]:
    """One transparent wrapper less."""
    return unwrap_proven(fields, 1)


def is_exact(specifier: str) -> bool:
    """Whether a rule covers one spelled-out command and no other."""
    pattern = compile_specifier(specifier)
    return not pattern.everything and not pattern.has_star


class RuleSet(Struct):
    """Many specifiers behind one regex, so that a miss costs one match."""

    specifiers: tuple[str, ...]
    any_text: re.Pattern[str] | None
    programs: frozenset[str]
    """First words of rules, for arguments that are not known."""

    def may_hit(self, part: Part, danger: Danger) -> bool:
        """Whether looking at the rules one by one can find anything."""
        if self.any_text is None:
            return False
        texts = [squeeze(part.node.words)] if isinstance(part.node, Simple) else []
        texts.append(_BLANKS.sub(" ", part.text))
        if any(self.any_text.fullmatch(text) for text in texts):
            return True
        for candidate in danger.candidates:
            values = _values(candidate)
            open_ended = UNKNOWN in values or any(_is_option(value) for value in values[1:])
            if open_ended and {values[0], candidate.program or ""} & self.programs:
                return True
            if any(self.any_text.fullmatch(text) for text in _texts(values)):
                return True
        return False


@lru_cache(maxsize=64)
def rule_set(specifiers: tuple[str, ...]) -> RuleSet:
    """The set of some rules."""
    patterns = [compile_specifier(item) for item in specifiers]
    readings = [regex.pattern for item in patterns for regex in _readings(item)]
    if any(item.everything for item in patterns):
        readings.append(".*")
    joined = (
        re.compile("|".join(f"(?:{text})" for text in readings), re.DOTALL) if readings else None
    )
    first = frozenset(item.text.partition(" ")[0].removesuffix(":*") for item in patterns)
    return RuleSet(specifiers, joined, first)


def matches(
    specifier: str, part: Part, kind: Literal["allow", "ask", "deny"], danger: Danger
) -> bool:
    """Whether a rule of `kind` covers `part`; a deny or ask rule also when it only may."""
    if kind == "allow":
        return allows(specifier, part)
    return hits(specifier, part, danger) != "no"


def hits(specifier: str, part: Part, danger: Danger) -> Literal["no", "maybe", "yes"]:
    """Whether a deny or ask rule covers anything `part` could run."""
    pattern = compile_specifier(specifier)
    if pattern.everything:
        return "yes"
    best: Literal["no", "maybe", "yes"] = "no"
    if isinstance(part.node, Simple) and _matches_text(pattern, squeeze(part.node.words)):
        return "yes"
    if part.kind == "simple" and _matches_text(pattern, _BLANKS.sub(" ", part.text)):
        return "yes"
    for candidate in danger.candidates:
        found = _hits_candidate(pattern, candidate)
        if found == "yes":
            return "yes"
        best = found if found != "no" else best
    return best


def _matches_text(pattern: Pattern, text: str) -> bool:
    return bool(pattern.regex.fullmatch(text))


def _hits_candidate(pattern: Pattern, candidate: Candidate) -> Literal["no", "maybe", "yes"]:
    values = _values(candidate)
    texts = _texts(values)
    for regex in _readings(pattern):
        if any(regex.fullmatch(text) for text in texts):
            return "yes" if candidate.certain else "maybe"
    open_ended = UNKNOWN in values[1:] and values[0] != UNKNOWN
    if open_ended and any(_may_match(pattern, text) for text in texts):
        return "maybe"
    return "maybe" if _is_hidden(pattern, candidate, values) else "no"


def _is_option(value: str) -> bool:
    return value.startswith(("-", "+"))


def _is_hidden(pattern: Pattern, candidate: Candidate, values: list[str]) -> bool:
    """Whether only options, and what may be their values, keep the rule's words apart."""
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
        may_be_value = _is_option(value) and not takes_no_value(candidate.program, value)
    return False


def _values(candidate: Candidate) -> list[str]:
    return [field.value if field.kind == "known" else UNKNOWN for field in candidate.fields]


def _texts(values: list[str]) -> set[str]:
    """The candidate's texts, with and without the program's directory."""
    plain = " ".join(values)
    texts = {plain, _BLANKS.sub(" ", plain)}
    if "/" in values[0]:
        texts.add(" ".join([values[0].rstrip("/").rpartition("/")[2], *values[1:]]))
    return texts


@lru_cache(maxsize=4096)
def _more_readings(text: str) -> tuple[re.Pattern[str], ...]:
    """The rule without its quotes, and with its program's directory left out."""
    bare = re.sub(r"['\"\\]", "", text)
    first, blank, rest = bare.partition(" ")
    texts = {bare, first.rpartition("/")[2] + blank + rest}
    return tuple(compile_specifier(item).regex for item in sorted(texts) if item)


def _readings(pattern: Pattern) -> tuple[re.Pattern[str], ...]:
    if any(char in pattern.text for char in "'\"\\/"):
        return (pattern.regex, *_more_readings(pattern.text))
    return (pattern.regex,)


def _may_match(pattern: Pattern, text: str) -> bool:
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
        row = _spread(left, right, at, row)
        if len(right) in row and at == len(left):
            return True
        if at == len(left):
            return False
        row = _advance(left[at], right, row)
    return False


def _spread(_left: str, right: str, _at: int, row: set[int]) -> set[int]:
    """Positions reachable by letting wildcards on the right stand for nothing."""
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
