"""The files a command writes, by their resulting paths.

Lists what well-known programs certainly write; an unknown path is None. `write_extent` proves that
a command writes nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any

from msgspec import Struct

from handaxe.shell.analysis.facts import TreeCopy, Writes
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse, make_path_uses, resolve
from handaxe.shell.analysis.program_tables import load_toml, split_names
from handaxe.shell.analysis.programs.embedded_languages import is_printing_sed
from handaxe.shell.analysis.programs.options import is_abbreviation
from handaxe.shell.analysis.programs.wrappers import read_find

_HERE = Field("known", ".", ".")
_SYMBOLIC = ("-s", "--symbolic")
_HARD = ("-l", "--link")
_SUFFIX_OPTIONS = ("-S", "--suffix")
_KEEPS_LINKS = ("-P", "-d", "--no-dereference", "--preserve", "-s", "--symbolic")
_BACKUPS = ("-b", "--backup", *_SUFFIX_OPTIONS)
_TAR_VALUED = frozenset("fCTXIFHbKLNVg")
_FIND_WRITES = split_names("-fprint -fprint0 -fprintf -fls")
_TO_STDOUT = re.compile(r"-[a-zA-Z]*[clt][a-zA-Z]*|--(stdout|list|test)")
_PACKED = (".gz", ".bz2", ".xz", ".zst", ".tgz", ".tbz2", ".Z")
_SUFFIXES = {"gzip": ".gz", "bzip2": ".bz2", "xz": ".xz", "zstd": ".zst"}
_DIRECTORIES = re.compile(r"-[A-Za-z]*d[A-Za-z]*|--directory")
_HIDDEN_GLOB = re.compile(r"(^|/)\.[^/]*[*?\[]")
"""It may match `.git` and similar names."""
_TAR_LONG = split_names("--file --directory --files-from --exclude")
_SED_DOES_MORE = re.compile(r"[wWe]")


class WriterOptions(Struct, frozen=True):
    """The writes of one program, from its words."""

    shape: str = ""
    outputs: frozenset[str] = frozenset()
    values: frozenset[str] = frozenset()
    copies: frozenset[str] = frozenset()
    """Options with which whole trees are copied; `*`: always."""


@cache
def load_writers() -> dict[str, WriterOptions]:
    """Every program of the table by name."""
    table: dict[str, WriterOptions] = {}
    for name, entry in load_toml("writers.toml").items():
        made = _make_options(entry)
        for alias in (name, *entry.get("same", "").split()):
            table[alias] = made
    return table


def _make_options(entry: dict[str, Any]) -> WriterOptions:
    words = {key: frozenset(entry.get(key, "").split()) for key in ("outputs", "values", "copies")}
    return WriterOptions(entry.get("shape", ""), **words)


class _Words(Struct):
    """A command's words, sorted."""

    operands: list[Field] = []
    outputs: list[Field] = []
    options: list[str] = []
    values: list[Field] = []
    all: list[Field] = []

    def has(self, options: Iterable[str]) -> bool:
        """Whether one of `options` is among them, also bundled or abbreviated."""
        for given in self.options:
            if given.partition("=")[0] in options or is_abbreviation(given, options):
                return True
            letters = given[1:] if not given.startswith("--") else ""
            if any(f"-{letter}" in options for letter in letters):
                return True
        return False


class _Found(Struct):
    """The written paths, before they are resolved in a directory."""

    fields: list[Field] = []
    trees: list[tuple[Field, Field, str, bool]] = []
    """Source, target, name in the target, and whether the source is an archive."""
    sources: list[Field] = []


def find_writes(program: str | None, fields: tuple[Field, ...], cwds: frozenset[str]) -> Writes:
    """The paths that a command certainly writes, and the trees whose names it writes."""
    writer = load_writers().get(program or "")
    if writer is None:
        return Writes()
    words = _sort_words(fields[1:], writer)
    found = _Found(list(words.outputs))
    shape = _SHAPES.get(writer.shape)
    if shape is not None:
        shape(program or "", words, writer, found)
    uses = (use for field in found.fields for use in make_path_uses(field, "write", cwds))
    reads = (use for field in found.sources for use in make_path_uses(field, "read", cwds))
    return Writes(
        uses=tuple(dict.fromkeys(_replace_hidden_globs(uses))),
        trees=tuple(_find_tree_copies(found, cwds, makes_link=program == "ln")),
        reads=tuple(dict.fromkeys(reads)),
    )


def _replace_hidden_globs(uses: Iterable[PathUse]) -> Iterator[PathUse]:
    for use in uses:
        if use.access != "write" or use.path == "/dev/null":
            continue
        is_open = use.glob and _HIDDEN_GLOB.search(use.text)
        yield PathUse(None, "write", use.text) if is_open else use


def _find_tree_copies(
    found: _Found, cwds: frozenset[str], *, makes_link: bool
) -> Iterator[TreeCopy]:
    for source, target, name, is_archive in found.trees:
        text = f"{source.text} to {target.text}"
        if source.kind == "unknown" or target.kind != "known" or not cwds:
            yield TreeCopy(text, None, None, name, is_archive, makes_link)
            continue
        for base in sorted(cwds):
            places = (resolve(source.value, base), resolve(target.value, base))
            yield TreeCopy(text, *places, name, is_archive, makes_link)


def _sort_words(fields: tuple[Field, ...], writer: WriterOptions) -> _Words:
    words = _Words(all=list(fields))
    pending: list[Field] | None = None
    for at, field in enumerate(fields):
        value = field.value
        if pending is not None:
            pending.append(field)
            pending = None
        elif value == "--" and field.kind == "known":
            words.operands.extend(fields[at + 1 :])
            break
        elif not value.startswith("-") or value == "-":
            words.operands.append(field)
        else:
            words.options.append(value)
            for known, into in ((writer.outputs, words.outputs), (writer.values, words.values)):
                given = _get_option_value(value, known)
                if given or (given is not None and "=" in value):
                    into.append(Field(field.kind, given, field.text))
                elif given is not None:
                    pending = into
                if given is not None:
                    break
    return words


def _get_option_value(option: str, known: frozenset[str]) -> str | None:
    """The value of one of these options: its text, "" for the next word, None for others."""
    name, equals, attached = option.partition("=")
    if name in known or is_abbreviation(name, known):
        return attached if equals else ""
    if option.startswith("--"):
        return None
    # Short options stand together, and the value may stand right behind: -sSo out, -oout.
    for at in range(1, len(option)):
        if f"-{option[at]}" in known:
            return option[at + 1 :]
    return None


def _add_all_operands(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    found.fields.extend(words.operands)


def _add_rest_operands(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    has_model = any(option.startswith("--reference") for option in words.options)
    found.fields.extend(words.operands if has_model else words.operands[1:])


def _add_first_operand(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    found.fields.extend(words.operands[:1])


def _add_second_operand(
    _program: str, words: _Words, _writer: WriterOptions, found: _Found
) -> None:
    found.fields.extend(words.operands[1:2])


def _add_of_operands(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    for field in words.operands:
        name, _, path = field.value.partition("=")
        if name == "of":
            found.fields.append(Field(field.kind, path, field.text, single=field.single))


def _add_packed(program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    """Gzip and similar programs write a file with another name and remove the original."""
    if any(_TO_STDOUT.fullmatch(option) for option in words.options):
        return
    for field in words.operands:
        found.fields.append(field)
        bare = next((field.value.removesuffix(e) for e in _PACKED if field.value.endswith(e)), "")
        other = bare or field.value + _SUFFIXES.get(program.removeprefix("g"), ".gz")
        found.fields.append(Field(field.kind, other, field.text, single=field.single))


def _add_copied(program: str, words: _Words, writer: WriterOptions, found: _Found) -> None:
    """Into the target, or in it under each source's name, because it may be a directory."""
    if program == "install" and any(map(_DIRECTORIES.fullmatch, words.options)):
        found.fields.extend(words.operands)
        return
    sources, target = words.operands[:-1], words.operands[-1] if words.operands else _HERE
    if words.outputs:
        sources, target = words.operands, words.outputs[-1]
    elif program == "ln" and len(words.operands) == 1:
        sources, target = words.operands, _HERE
    if not sources:
        return
    is_whole = words.has(("-T", "--no-target-directory"))
    copies_trees = "*" in writer.copies or words.has(writer.copies) or words.has(_KEEPS_LINKS)
    found.fields.append(target)
    if program != "ln":
        found.sources.extend(sources)
    is_hard_link = (program == "ln" and not words.has(_SYMBOLIC)) or (
        program in ("cp", "gcp") and words.has(_HARD)
    )
    # A second name is one more way to write the file.
    if program in ("mv", "gmv") or is_hard_link:
        found.fields.extend(sources)
    before = len(found.fields)
    for source in sources:
        name = _get_last_name(source)
        if not is_whole and name is None:
            found.fields.append(Field("unknown", target.value, f"{source.text} in {target.text}"))
        elif not is_whole and name:
            found.fields.append(_join_name(target, name))
        if copies_trees:
            found.trees.append((source, target, "" if is_whole else name or "", False))
    if words.has(_BACKUPS):
        suffix = words.values[-1].value if words.values and words.has(_SUFFIX_OPTIONS) else "~"
        named = [target, *found.fields[before:]]
        found.fields.extend(_make_backup(field, suffix) for field in named)


def _get_last_name(source: Field) -> str | None:
    """The name of a source in a directory; empty: its content goes there, None: unknown."""
    if source.kind == "unknown":
        return None
    name = source.value.rpartition("/")[2]
    return "" if name in ("", ".", "..") else name


def _join_name(target: Field, name: str) -> Field:
    is_glob = any(sign in name for sign in "*?[") or target.kind == "glob"
    kind = "unknown" if target.kind == "unknown" else "glob" if is_glob else "known"
    return Field(kind, f"{target.value.rstrip('/')}/{name}", target.text)


def _add_edited_in_place(
    program: str, words: _Words, _writer: WriterOptions, found: _Found
) -> None:
    scripts, operands = words.values, words.operands
    if program != "perl" and not scripts:
        scripts, operands = operands[:1], operands[1:]
    if program in ("sed", "gsed"):
        found.fields.extend(Field("unknown", "", s.text) for s in scripts if _has_side_effects(s))
    suffix = _find_backup_suffix(words.options)
    if suffix is None:
        return
    found.fields.extend(operands)
    if program != "yq" and suffix:
        found.fields.extend(_make_backup(field, suffix) for field in operands)


def _has_side_effects(script: Field) -> bool:
    return bool(_SED_DOES_MORE.search(script.value)) and not is_printing_sed(script.value)


def _find_backup_suffix(options: list[str]) -> str | None:
    """The backup suffix of `-i`; None without `-i`."""
    for option in options:
        if option.startswith("--i"):
            return option.partition("=")[2]
        at = option.find("i") if not option.startswith("--") else -1
        if at > 0:
            return option[at + 1 :]
    return None


def _make_backup(field: Field, suffix: str) -> Field:
    if "*" in suffix or "/" in suffix or field.kind == "unknown":
        return Field("unknown", "", f"{field.text} with the suffix {suffix}")
    return Field(field.kind, field.value + suffix, field.text, single=field.single)


def _add_tar(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    """Creating writes the archive; extracting writes every name in it."""
    given = _read_tar(words.all)
    archives, modes = given.get("f", given.get("--file", [])), given.keys()
    if not {"c", "r", "u", "--create", "--append", "--update"}.isdisjoint(modes):
        found.fields.extend(archives)
    elif not {"x", "--extract", "--get"}.isdisjoint(modes):
        targets = [*given.get("C", []), *given.get("--directory", [])] or [_HERE]
        archives = archives or [Field("unknown", "", "an archive that is not named")]
        found.fields.extend(targets)
        found.trees.extend((source, to, "", True) for source in archives for to in targets)


def _read_tar(fields: list[Field]) -> dict[str, list[Field]]:
    """Letters and long options of tar with their values; the first word may lack its dash."""
    given: dict[str, list[Field]] = {}
    waiting: list[str] = []
    for at, field in enumerate(fields):
        value = field.value
        if waiting:
            given[waiting.pop(0)].append(field)
        elif value.startswith("--"):
            name, equals, attached = value.partition("=")
            given.setdefault(name, [])
            if equals:
                given[name].append(Field(field.kind, attached, field.text))
            elif name in _TAR_LONG:
                waiting.append(name)
        elif value.startswith("-") or at == 0:
            waiting += _read_tar_letters(field, given)
    return given


def _read_tar_letters(field: Field, given: dict[str, list[Field]]) -> list[str]:
    """Add a bundle of letters; returns those whose values are the next words."""
    waiting: list[str] = []
    letters = field.value.lstrip("-")
    for index, letter in enumerate(letters):
        values = given.setdefault(letter, [])
        if letter not in _TAR_VALUED:
            continue
        rest = letters[index + 1 :]
        if field.value.startswith("-") and (rest or field.kind != "known"):
            values.append(Field(field.kind, rest, field.text))
            break
        waiting.append(letter)
    return waiting


def _add_find(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    for at, field in enumerate(words.all[:-1]):
        if field.known in _FIND_WRITES:
            found.fields.append(words.all[at + 1])
    action = read_find(words.all)
    if action.deletes or any(program in load_writers() for program in action.programs):
        found.fields.extend(action.roots)


def _add_unzip(_program: str, words: _Words, _writer: WriterOptions, found: _Found) -> None:
    if words.has(("-l", "-t", "-v", "-Z", "-z", "-p", "-c")) or not words.operands:
        return
    goes = "-d" in words.options and len(words.operands) > 1
    attached = [o[2:] for o in words.options if o.startswith("-d") and len(o) > 2]
    target = words.operands[-1] if goes else _HERE
    target = Field("known", attached[0], attached[0]) if attached else target
    found.fields.append(target)
    found.trees.append((words.operands[0], target, "", True))


_Shape = Callable[[str, _Words, WriterOptions, _Found], None]
_SHAPES: dict[str, _Shape] = {
    "every": _add_all_operands,
    "rest": _add_rest_operands,
    "first": _add_first_operand,
    "second": _add_second_operand,
    "of": _add_of_operands,
    "pack": _add_packed,
    "put": _add_copied,
    "in_place": _add_edited_in_place,
    "tar": _add_tar,
    "find": _add_find,
    "unzip": _add_unzip,
}
