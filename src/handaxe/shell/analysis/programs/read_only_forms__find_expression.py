"""The expressions of find that only look."""

from __future__ import annotations

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.operands import check_path
from handaxe.shell.analysis.programs.options import NotProven
from handaxe.shell.analysis.walker import ShellState

PRIMARIES = split_names(
    "-print -print0 -ls -prune -quit -empty -depth -mount -xdev -daystart -readable -writable "
    "-executable -true -false -not -a -o -and -or -nouser -nogroup -noleaf ! ( ) , "
    "-ignore_readdir_race"
)
"""Words of an expression that stand alone."""
VALUED_PRIMARIES = split_names(
    "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex "
    "-regextype -type -xtype -size -mtime -atime -ctime -mmin -amin -cmin -maxdepth -mindepth "
    "-perm -user -group -uid -gid -links -inum -fstype -used -printf -context"
)
"""Words of an expression with a value that opens no file."""
_PATHS = frozenset({"-newer", "-anewer", "-cnewer", "-samefile"})


def check_find(fields: list[Field], state: ShellState) -> list[PathUse]:
    """The starting points of a find that runs nothing and writes nothing; raises `Refused`."""
    at = 0
    while at < len(fields) and fields[at].known in ("-H", "-P"):
        at += 1
    uses: list[PathUse] = []
    while at < len(fields) and not _is_expression_start(fields[at]):
        uses.extend(check_path(fields[at], state))
        at += 1
    while at < len(fields):
        word = fields[at].known
        at += 1
        if word is None:
            raise NotProven(f"{fields[at - 1].text} may expand to an action of find")
        if word in PRIMARIES:
            continue
        if word not in VALUED_PRIMARIES and word not in _PATHS and not word.startswith("-newer"):
            raise NotProven(f"the expression {word} of find is not known to be harmless")
        if at >= len(fields):
            raise NotProven(f"{word} has no value")
        if word in _PATHS:
            uses.extend(check_path(fields[at], state))
        elif word.startswith("-newer") and not word.endswith("t"):
            raise NotProven(f"the expression {word} of find is not known to be harmless")
        at += 1
    return uses


def _is_expression_start(field: Field) -> bool:
    return field.may_be_option or field.known in ("(", ")", "!", ",")
