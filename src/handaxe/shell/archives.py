"""The proof that tar only lists what is in an archive."""

from __future__ import annotations

from handaxe.shell.fields import Field
from handaxe.shell.flow import State
from handaxe.shell.operands import Setting, checked_path
from handaxe.shell.options import Refused
from handaxe.shell.places import PathUse
from handaxe.shell.tables import ProgramTable, names

_TAR_LETTERS = frozenset("tvzjJf")
_TAR_LONG = names("--list --verbose --gzip --bzip2 --xz --zstd")


def tar_uses(
    fields: list[Field], _table: ProgramTable, state: State, _setting: Setting
) -> list[PathUse]:
    """`tar -tf archive`: the list of what is in a file of this machine."""
    words = _known(fields, "tar")
    if words and not words[0].startswith("-"):
        words[0] = f"-{words[0]}"
    archive, lists, at = None, False, 0
    while at < len(words):
        word, at = words[at], at + 1
        if word.startswith("--file="):
            archive = word.removeprefix("--file=")
        elif word in _TAR_LONG:
            lists = lists or word == "--list"
        elif word.startswith("-") and _TAR_LETTERS.issuperset(word[1:]) and len(word) > 1:
            lists = lists or "t" in word
            if "f" in word:
                if word.count("f") > 1 or not word.endswith("f") or at >= len(words):
                    raise Refused(f"{word} of tar is not plain")
                archive, at = words[at], at + 1
        elif word.startswith("-"):
            raise Refused(f"the option {word} of tar is not known to be harmless")
    if not lists or archive is None:
        raise Refused("only tar -t with -f just looks")
    if ":" in archive or archive.startswith("-"):
        raise Refused("tar would fetch the archive from another machine")
    return checked_path(Field("known", archive, archive), state)


def _known(fields: list[Field], program: str) -> list[str]:
    words = [field.known for field in fields]
    if any(word is None for word in words):
        raise Refused(f"the arguments of {program} are not known before it runs")
    return [word for word in words if word is not None]
