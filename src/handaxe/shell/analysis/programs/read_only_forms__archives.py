"""The proof that tar only lists what is in an archive."""

from __future__ import annotations

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse
from handaxe.shell.analysis.program_tables import ProgramTable, split_names
from handaxe.shell.analysis.programs.operands import ProofContext, check_path
from handaxe.shell.analysis.programs.options import NotProven
from handaxe.shell.analysis.walker import ShellState

_TAR_LETTERS = frozenset("tvzjJf")
_TAR_LONG = split_names("--list --verbose --gzip --bzip2 --xz --zstd")


def check_tar(
    fields: list[Field], _table: ProgramTable, state: ShellState, _setting: ProofContext
) -> list[PathUse]:
    """`tar -tf archive`: the list of what is in a file of this machine."""
    words = _require_known(fields, "tar")
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
                    raise NotProven(f"{word} of tar is not plain")
                archive, at = words[at], at + 1
        elif word.startswith("-"):
            raise NotProven(f"the option {word} of tar is not known to be harmless")
    if not lists or archive is None:
        raise NotProven("only tar -t with -f just looks")
    if ":" in archive or archive.startswith("-"):
        raise NotProven("tar would fetch the archive from another machine")
    return check_path(Field("known", archive, archive), state)


def _require_known(fields: list[Field], program: str) -> list[str]:
    words = [field.known for field in fields]
    if any(word is None for word in words):
        raise NotProven(f"the arguments of {program} are not known before it runs")
    return [word for word in words if word is not None]
