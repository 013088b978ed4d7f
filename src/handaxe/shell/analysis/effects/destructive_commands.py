"""Destructive commands, and removals that always need approval."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from handaxe.shell.analysis.effects.possible_commands import CommandCandidate
from handaxe.shell.analysis.facts import CommandFacts, DestructiveForm, RedirectUse, Removal
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import is_critical, is_inside, make_path_uses
from handaxe.shell.analysis.program_tables import load_toml, split_names
from handaxe.shell.analysis.programs.wrappers import (
    FED,
    REMOVERS,
    find_inner_commands,
    get_program_name,
    read_find,
)

_QUOTES = re.compile(r"['\"\\]")
_GIT_GOES = frozenset({"-C", "--work-tree", "--git-dir"})
_IN_THE_TREE = split_names(
    "rm rmdir unlink truncate shred find chmod chown chgrp rsync redirection"
)
"""Destructive forms that change only the paths they name."""
_MIRROR = re.compile(r"remote\..*\.mirror", re.IGNORECASE)
_RECURSIVE = frozenset({"-r", "-R", "--recursive"})


class _Form(Struct, frozen=True):
    words: tuple[str, ...]
    options: frozenset[str]
    reason: str
    is_lasting: bool
    in_checkout: bool


@cache
def _load_forms() -> dict[str, list[_Form]]:
    forms: dict[str, list[_Form]] = {}
    for entry in load_toml("destructive.toml")["form"]:
        words = tuple(entry["words"].split())
        options = frozenset(entry.get("any", "").split())
        is_lasting, in_checkout = entry.get("lasting", False), entry.get("checkout", False)
        form = _Form(words, options, entry["reason"], is_lasting, in_checkout)
        forms.setdefault(words[0], []).append(form)
    return forms


def is_destructive_name(program: str) -> bool:
    """Whether `program` alone is listed as destructive."""
    return any(len(form.words) == 1 for form in _load_forms().get(program, ()))


def is_irreversible_form(rule_head: str, form: str) -> bool:
    """Whether the fixed start of a rule names an irreversible form."""
    words = _QUOTES.sub("", rule_head).split()
    return any(
        known.is_lasting and " ".join(known.words) == form and _is_form_match(words, known)
        for known in _load_forms().get(words[0] if words else "", ())
    )


def find_losses(
    candidates: Iterable[CommandCandidate], redirects: Iterable[RedirectUse]
) -> tuple[DestructiveForm, ...]:
    """Every destructive form in a part, directly or inside a wrapper."""
    found: list[DestructiveForm] = []
    listed = list(candidates)
    elsewhere = tuple(path for candidate in listed for path in _find_git_directories(candidate))
    for candidate in listed:
        program, *more = (candidate.program or "").partition(".")[0].split("-", 1)
        is_git = program == "git"
        head = [program, *more] if is_git else [(candidate.program or "").partition(".")[0]]
        values = [*head, *(field.value for field in candidate.fields[1:])]
        if is_git:
            values = [head[0], *_read_git_settings(values[1:])]
        form = next(
            (form for form in _load_forms().get(head[0], ()) if _is_form_match(values, form)), None
        )
        if form is not None:
            loss = _make_destructive_form(candidate, form)
            found.append(replace(loss, paths=(*loss.paths, *elsewhere)) if is_git else loss)
    for use in redirects:
        if use.replaces:
            paths = tuple(item.path for item in use.uses if item.path)
            found.append(DestructiveForm(use.text, "redirection", "replaces the file", paths=paths))
    return tuple(dict.fromkeys(found))


def _read_git_settings(values: list[str]) -> list[str]:
    """The words of a git command with the effect of `-c`: an alias, a forcing mirror."""
    given = [values[at + 1] for at, value in enumerate(values[:-1]) if value == "-c"]
    settings = {name: text for name, _, text in (item.partition("=") for item in given)}
    if any(_MIRROR.fullmatch(name) for name in settings):
        return [*(value for value in values if value not in ("-c", *given)), "--mirror"]
    for at, value in enumerate(values):
        if (alias := settings.get(f"alias.{value}")) is not None:
            return [*alias.split(), *values[at + 1 :]]
    return values


def _find_git_directories(candidate: CommandCandidate) -> Iterator[str]:
    """Directories in global options of git."""
    fields = candidate.fields if candidate.program == "git" else ()
    for at, field in enumerate(fields[1:], start=1):
        name, equals, attached = field.value.partition("=")
        if name not in _GIT_GOES:
            continue
        given = Field(field.kind, attached, field.text) if equals else None
        following = fields[at + 1] if at + 1 < len(fields) else None
        target = given or following
        for use in make_path_uses(target, "write", candidate.cwds) if target is not None else ():
            yield use.path or "/"


def _is_form_match(values: list[str], form: _Form) -> bool:
    size = len(form.words)
    bare = [value for value in values if not value.startswith("-")]
    is_named = form.words in (tuple(values[:size]), tuple(bare[:size]))
    # Values of global options may be between the words.
    is_spread = form.words[0] != "git" and form.is_lasting and _is_subsequence(form.words, values)
    if not is_named and not is_spread:
        return False
    rest = [value for value in values if value not in form.words]
    return not form.options or any(_has_option(value, form.options) for value in rest)


def _is_subsequence(words: tuple[str, ...], values: list[str]) -> bool:
    rest = iter(value.lower() for value in values)
    return all(word in rest for word in words)


def _has_option(value: str, options: frozenset[str]) -> bool:
    if value.partition("=")[0] in options:
        return True
    if any(option[-1] == "*" and value.startswith(option[:-1]) for option in options):
        return True
    if value.startswith("--"):
        # Long options may be abbreviated.
        return len(value) > 3 and any(option.startswith(value) for option in options)
    if not value.startswith("-"):
        return False
    return any(f"-{letter}" in options for letter in value[1:])


def _make_destructive_form(candidate: CommandCandidate, form: _Form) -> DestructiveForm:
    named = [
        use
        for field in candidate.fields[len(form.words) :]
        if not (field.known or "").startswith("-")
        for use in make_path_uses(field, "write", candidate.cwds)
    ]
    return DestructiveForm(
        _join_text(candidate),
        " ".join(form.words),
        form.reason,
        form.is_lasting,
        tuple(use.path for use in named if use.path),
        form.in_checkout,
        tuple(use for use in named if use.path and use.access == "write"),
    )


def _join_text(candidate: CommandCandidate) -> str:
    return " ".join(field.text for field in candidate.fields)


def find_removals(candidates: Iterable[CommandCandidate]) -> tuple[Removal, ...]:
    """The targets of every removal, with their possible paths."""
    found: list[Removal] = []
    for candidate in candidates:
        if candidate.program in REMOVERS:
            found.extend(_list_removals(candidate))
        elif candidate.program == "find":
            found.extend(_list_find_removals(candidate))
        elif candidate.program in FED:
            found.extend(_list_fed_removals(candidate))
    return tuple(dict.fromkeys(found))


def _list_find_removals(candidate: CommandCandidate) -> Iterator[Removal]:
    """The starting points of a find that removes everything, or their `.git`.

    Files in the current directory are not listed, because undo saves them.
    """
    action = read_find(list(candidate.fields[1:]))
    text = _join_text(candidate)
    for root in action.roots if action.removes else ():
        if not action.can_match(f"{root.value}/.git"):
            continue
        for path, is_open in _resolve_targets(root, candidate.cwds, recursive=True):
            is_any = path is None or action.names is None
            if is_any and path in candidate.cwds:
                continue
            yield Removal(text, "find", root.text, path if is_any else f"{path}/.git", is_open)


def _list_fed_removals(candidate: CommandCandidate) -> Iterator[Removal]:
    """`xargs rm -r`: the targets come from standard input."""
    for command, _ in find_inner_commands(list(candidate.fields)).commands:
        name = get_program_name(command[0]) if command else None
        if name in REMOVERS and _is_recursive(command):
            text = _join_text(candidate)
            yield Removal(text, name or "rm", "standard input", None, is_open=True)


def _is_recursive(fields: Iterable[Field]) -> bool:
    return any(_has_option(field.value, _RECURSIVE) for field in fields)


def _list_removals(candidate: CommandCandidate) -> Iterator[Removal]:
    text, program = _join_text(candidate), candidate.program or "rm"
    recursive = _is_recursive(candidate.fields[1:])
    for field in candidate.fields[1:]:
        if (field.known or "").startswith("-"):
            continue
        for path, is_open in _resolve_targets(field, candidate.cwds, recursive=recursive):
            yield Removal(text, program, field.text, path, is_open)


def _resolve_targets(
    field: Field, cwds: frozenset[str], *, recursive: bool
) -> Iterator[tuple[str | None, bool]]:
    if field.kind == "unknown":
        # The known part may be only the root: `rm -rf /$x`.
        head = field.value.strip("/")
        yield None, not head and ("/" in field.text or recursive)
        return
    for use in make_path_uses(field, "write", cwds):
        if use.path is None:
            yield None, recursive
        elif use.access == "write":
            yield use.path, False


def is_irreversible(facts: CommandFacts, roots: tuple[str, ...]) -> bool:
    """Whether the command destroys something outside the working directories or remotely."""
    roots = roots or (facts.cwd,)
    for part in facts.parts:
        for removal in part.removals:
            is_known = removal.path is not None
            if removal.is_open or (
                is_known and is_critical(removal.path or "", facts.cwd, facts.home, roots)
            ):
                return True
        if any(_is_irreversible(loss, facts.cwd, roots) for loss in part.losses):
            return True
    return False


def _is_irreversible(loss: DestructiveForm, cwd: str, roots: tuple[str, ...]) -> bool:
    if loss.in_checkout:
        return not any(is_inside(cwd, root) for root in roots)
    if loss.form not in _IN_THE_TREE or not loss.paths:
        return loss.form != "redirection"
    return not all(any(is_inside(path, root) for root in roots) for path in loss.paths)
