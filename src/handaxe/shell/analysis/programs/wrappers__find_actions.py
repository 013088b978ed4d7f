"""What a find does to the files it meets: `-delete`, and the programs that `-exec` runs."""

from __future__ import annotations

from fnmatch import fnmatchcase
from itertools import pairwise

from msgspec import Struct

from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.wrappers import FIND_RUNS, get_program_name

REMOVERS = split_names("rm rmdir unlink shred")
_HERE = Field("known", ".", ".")
_STARTS = frozenset({"-H", "-L", "-P"})
_NAME_TESTS = split_names("-name -iname -path -ipath -wholename -iwholename -regex -iregex")
_OPENERS = frozenset({"!", "-not", "-o", "-or", ","})
"""After one of these a test need not hold for what is found."""


class FindAction(Struct, frozen=True):
    """What a find does below its starting points."""

    roots: tuple[Field, ...]
    programs: tuple[str | None, ...] = ()
    """What it gives the files to; None where the text does not say."""
    deletes: bool = False
    names: tuple[str, ...] | None = None
    """Patterns of the names it is limited to; None: any file below a starting point."""

    @property
    def removes(self) -> bool:
        """Whether files go."""
        return self.deletes or not REMOVERS.isdisjoint(self.programs)

    def can_match(self, path: str) -> bool:
        """Whether the file at `path` may be among what it acts on."""
        path = path.lower()
        texts = (path, path.rpartition("/")[2])
        return self.names is None or any(
            fnmatchcase(texts["/" not in pattern], pattern) for pattern in self.names
        )


def read_find(args: list[Field]) -> FindAction:
    """Read the words of a find behind its name."""
    at = next((i for i, field in enumerate(args) if not _is_start(field)), len(args))
    roots = tuple(field for field in args[:at] if field.known not in _STARTS) or (_HERE,)
    programs: list[str | None] = []
    patterns: list[str] = []
    deletes, is_narrowed = False, True
    for before, field in pairwise((_HERE, *args[at:])):
        if before.known in FIND_RUNS:
            programs.append(get_program_name(field))
        elif before.known in _NAME_TESTS and not programs and not deletes:
            is_pattern = field.known is not None and "regex" not in before.value
            patterns.append(field.value.lower() if is_pattern else "*")
        elif field.known == "-empty":
            patterns.append("")
        elif field.kind != "known" or field.known in _OPENERS:
            is_narrowed = False
        deletes = deletes or field.known == "-delete"
    limits = tuple(patterns) if patterns and is_narrowed else None
    return FindAction(roots, tuple(programs), deletes, limits)


def _is_start(field: Field) -> bool:
    return field.known in _STARTS or field.value[:1] not in ("-", "(", "!", ",")
