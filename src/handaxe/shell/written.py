"""The files that a command surely writes, by the words of well-known programs.

For allow rules: a rule for `cp` is no rule for every place that cp can write to. Unlike `effects`
it names only what is written for certain, so that ordinary work is not asked about; what the
programs do beside that (interpreters, builds) is the rule's own business.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from handaxe.shell.danger import Danger
from handaxe.shell.fields import Field
from handaxe.shell.flow import Part
from handaxe.shell.little_languages import is_printing_sed
from handaxe.shell.places import PathUse, uses_of
from handaxe.shell.runners import program_name
from handaxe.shell.tables import names

_EVERY = names(
    "rm rmdir unlink shred touch mkdir mkfifo tee truncate mv gmv gzip gunzip bzip2 bunzip2 xz "
    "unxz dos2unix unix2dos nano vim vi nvim emacs ed ex pico"
)
_INTO_LAST = names("cp gcp install ln rsync scp mv gmv")
_AFTER_FIRST = names("chmod chown chgrp chattr")
_IN_PLACE = names("sed gsed perl yq")
_OUTPUTS = {
    "sort": "-o --output",
    "curl": "-o --output -D --dump-header -c --cookie-jar --output-dir --trace --trace-ascii",
    "wget": "-O --output-document -o --output-file -a --append-output -P --directory-prefix",
    "gcc": "-o",
    "cc": "-o",
    "clang": "-o",
    "tree": "-o",
    "unzip": "-d",
    "openssl": "-out",
    "patch": "-o --output -d --directory",
    "cp": "-t --target-directory",
    "mv": "-t --target-directory",
    "ln": "-t --target-directory",
    "install": "-t --target-directory",
    "rsync": "--log-file",
}
_VALUES = {
    "touch": "-r --reference -d --date -t",
    "truncate": "-r --reference -s --size",
    "install": "-m --mode -o --owner -g --group",
    "cp": "-S --suffix",
    "rsync": "-e --rsh --exclude --include --filter -f --files-from --exclude-from",
    "scp": "-P -i -o -F -S -J -l -c",
    "mkdir": "-m --mode",
    "sed": "-e --expression -f --file -l",
    "gsed": "-e --expression -f --file -l",
    "perl": "-e -E -I -M -0",
}
"""Options whose value is no operand."""
_TO_STDOUT = re.compile(r"-[a-zA-Z]*[clt][a-zA-Z]*|--(stdout|list|test)")
_EDITS = re.compile(r"-[A-Za-z]*i.*|--in-?place.*")
_HIDDEN_GLOB = re.compile(r"(^|/)\.[^/]*[*?\[]")
"""It may name `.git` and its like."""
_TAR_MODES = names("--create --append --update --extract --get --list")
_SED_DOES_MORE = re.compile(r"[wWe]")


class _Words(Struct):
    """A command's words, sorted."""

    operands: list[Field] = []
    outputs: list[Field] = []
    options: list[str] = []
    values: list[Field] = []


def written_uses(part: Part, danger: Danger, cwd: str) -> list[PathUse]:
    """The paths that `part` writes as operands, in every state; a path nobody knows has none.

    Where the text does not say from which directory, a literal word is seen from `cwd`: the rule
    that allows the command lets it go there as well.
    """
    uses: list[PathUse] = []
    for candidate in danger.candidates:
        for state in part.states:
            uses.extend(_uses(list(candidate.fields), state.cwds or frozenset({cwd})))
    return list(dict.fromkeys(uses))


def _uses(fields: list[Field], cwds: frozenset[str]) -> list[PathUse]:
    program = program_name(fields[0]) or ""
    words = _sorted_words(fields[1:], program)
    written = [*words.outputs, *_OPERANDS.get(program, _no_operand)(program, words)]
    uses = (use for field in written for use in uses_of(field, "write", cwds))
    return [
        PathUse(None, "write", use.text) if use.glob and _HIDDEN_GLOB.search(use.text) else use
        for use in uses
        if use.access == "write" and use.path != "/dev/null"
    ]


def _sorted_words(fields: list[Field], program: str) -> _Words:
    outputs = frozenset(_OUTPUTS.get(program, "").split())
    valued = frozenset(_VALUES.get(program, "").split())
    words = _Words()
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
            for known, into in ((outputs, words.outputs), (valued, words.values)):
                given = _value_of(value, known)
                if given:
                    into.append(Field(field.kind, given, field.text))
                elif given is not None:
                    pending = into
                if given is not None:
                    break
    return words


def _value_of(option: str, known: frozenset[str]) -> str | None:
    """What an option of these is given: its text, "" for the next word, None for another option."""
    name, equals, attached = option.partition("=")
    if name in known:
        return attached if equals else ""
    if option.startswith("--"):
        return None
    # Short options stand together, and the value may stand right behind: -sSo out, -oout.
    for at in range(1, len(option)):
        if f"-{option[at]}" in known:
            return option[at + 1 :]
    return None


def _no_operand(_program: str, _words: _Words) -> Iterable[Field]:
    return ()


def _every(program: str, words: _Words) -> Iterable[Field]:
    packs = program in {"gzip", "gunzip", "bzip2", "bunzip2", "xz", "unxz"}
    if packs and any(_TO_STDOUT.fullmatch(option) for option in words.options):
        return ()
    return [*words.operands, *(_into_last(program, words) if program in _INTO_LAST else ())]


def _into_last(program: str, words: _Words) -> Iterable[Field]:
    """The target, and each source's name inside it: the target may be a directory."""
    makes_all = program == "install" and any(
        re.fullmatch(r"-[A-Za-z]*d[A-Za-z]*|--directory", option) for option in words.options
    )
    if makes_all:
        return words.operands
    if program == "ln" and len(words.operands) == 1 and not words.outputs:
        sources, target = words.operands, Field("known", ".", ".")
    elif words.outputs:
        sources, target = words.operands, words.outputs[-1]
    else:
        sources, target = words.operands[:-1], (words.operands or [Field("known", ".", ".")])[-1]
    named = [_inside(target, source) for source in sources if source.kind == "known"]
    return [target, *named] if sources else ()


def _inside(target: Field, source: Field) -> Field:
    name = source.value.rstrip("/").rpartition("/")[2]
    name = "" if name in {".", ".."} else name
    return Field(target.kind, f"{target.value.rstrip('/')}/{name}", target.text)


def _after_first(_program: str, words: _Words) -> Iterable[Field]:
    has_model = any(option.startswith("--reference") for option in words.options)
    return words.operands if has_model else words.operands[1:]


def _in_place(program: str, words: _Words) -> Iterable[Field]:
    scripts = words.values
    operands = words.operands
    if program in {"sed", "gsed", "yq"} and not scripts:
        scripts, operands = operands[:1], operands[1:]
    found: list[Field] = []
    if program in {"sed", "gsed"}:
        found = [Field("unknown", "", s.text) for s in scripts if _does_more(s)]
    return [*found, *operands] if any(map(_EDITS.fullmatch, words.options)) else found


def _does_more(script: Field) -> bool:
    return bool(_SED_DOES_MORE.search(script.value)) and not is_printing_sed(script.value)


def _dd(_program: str, words: _Words) -> Iterable[Field]:
    for field in words.operands:
        name, _, path = field.value.partition("=")
        if name == "of":
            yield Field(field.kind, path, field.text)


def _second(_program: str, words: _Words) -> Iterable[Field]:
    return words.operands[1:2]


def _first(_program: str, words: _Words) -> Iterable[Field]:
    return words.operands[:1]


def _tar(_program: str, words: _Words) -> Iterable[Field]:
    """A tar that packs writes its archive, one that unpacks the directory it is told."""
    first = words.operands[0].value if words.operands else ""
    short = [option[1:] for option in words.options if not option.startswith("--")]
    is_old = not set("cruxt") & set("".join(short)) and not _TAR_MODES & set(words.options)
    letters = "".join(short) + (first if is_old else "")
    long = set(words.options)
    operands = words.operands[1:] if is_old else words.operands
    if set("cru") & set(letters) or long & {"--create", "--append", "--update"}:
        named = [o.partition("=")[2] for o in words.options if o.startswith("--file=")]
        return [Field("known", name, name) for name in named] or operands[:1]
    if "x" in letters or long & {"--extract", "--get"}:
        named = [o.partition("=")[2] for o in words.options if o.startswith("--directory=")]
        places = [Field("known", name, name) for name in named]
        # The words after -f and -C stand among the operands, the archive first.
        return [*places, *(operands[1:] if "C" in letters or "--directory" in long else ())]
    return ()


_OPERANDS: dict[str, Callable[[str, _Words], Iterable[Field]]] = {
    **dict.fromkeys(_INTO_LAST, _into_last),
    **dict.fromkeys(_EVERY, _every),
    **dict.fromkeys(_AFTER_FIRST, _after_first),
    **dict.fromkeys(_IN_PLACE, _in_place),
    "dd": _dd,
    "uniq": _second,
    "xxd": _second,
    "zip": _first,
    "patch": _first,
    "tar": _tar,
    "bsdtar": _tar,
}
