"""`CommandFacts`: everything known about a bash command from its text, as plain data.

`analyze` builds it once per text. Decisions, effects, undo, the sandbox, `explain`, suggestions and
displays use it; none of them reads the command itself. It does not depend on rules, the mode or the
disk.
"""

from __future__ import annotations

from msgspec import Struct

from handaxe.contract.effects import Extent
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse


class RecursiveRead(Struct, frozen=True):
    """A read of everything below a path."""

    use: PathUse
    shown_only: bool = False
    """The reader skips hidden files."""
    without_files: tuple[str, ...] = ()
    """Patterns of excluded file names."""
    without_directories: tuple[str, ...] = ()
    only_files: tuple[str, ...] = ()
    """Patterns of the only included file names; empty: all."""


class RedirectUse(Struct, frozen=True):
    """The effect of a redirection: nothing (free), a file use, or unknown."""

    text: str
    uses: tuple[PathUse, ...] = ()
    problem: str = ""
    writes: bool = False
    replaces: bool = False
    """Whether the file loses its content."""


class DestructiveForm(Struct, frozen=True):
    """A destructive form in a command, with its effect in plain words."""

    text: str
    form: str
    reason: str
    irreversible: bool = False
    """Whether it is irreversible: it affects another machine, a device or a remote store."""
    paths: tuple[str, ...] = ()
    in_checkout: bool = False
    """Whether it changes only the working tree in which it runs."""
    targets: tuple[PathUse, ...] = ()
    """Paths that it changes with everything below them."""


class Removal(Struct, frozen=True):
    """A target of `rm` and similar programs: its possible path, or None if unknown."""

    text: str
    program: str
    target: str
    path: str | None
    is_open: bool = False
    """Whether the target may be anything: an unknown word."""


class FileUses(Struct, frozen=True):
    """The files of one command that its words name."""

    uses: tuple[PathUse, ...] = ()
    sweeps: tuple[RecursiveRead, ...] = ()
    holds_files: bool = False
    """Whether an operand that is unknown before it runs is certainly a file."""
    opaque: tuple[PathUse, ...] = ()
    """Files that are certainly read and not named in the text."""
    moved: tuple[PathUse, ...] = ()
    """Paths that are moved with everything below them."""
    may_write: bool = True
    """Whether the program may do more than read its operands."""
    changes_tree: bool = False
    """Whether it changes files that its input names, not its words: `git merge`, `patch`."""


class TreeCopy(Struct, frozen=True):
    """A tree or archive whose names a command writes at a target."""

    text: str
    source: str | None
    """The tree or archive; None if unknown."""
    target: str | None
    name: str = ""
    """The tree's name in a target directory; empty: only its content is copied."""
    is_archive: bool = False
    makes_link: bool = False
    """Whether a link to the source is created instead of a copy."""


class Writes(Struct, frozen=True):
    """The files a command certainly writes, by their resulting paths."""

    uses: tuple[PathUse, ...] = ()
    trees: tuple[TreeCopy, ...] = ()
    reads: tuple[PathUse, ...] = ()
    """The files whose content is copied there."""


class PossibleCommand(Struct, frozen=True):
    """A command that could run; `certain` if the text has no other reading."""

    fields: tuple[Field, ...]
    certain: bool
    cwds: frozenset[str] = frozenset()
    """Its possible directories; empty if unknown."""
    program: str | None = None
    """The program's name without its directory, or None if unknown."""
    consists_of: frozenset[str] = frozenset()
    """Programs that it runs, because it is a script of them."""
    opened: tuple[PathUse, ...] = ()
    """Files that a wrapper opens, or that its input may name."""
    files: FileUses = FileUses()
    writes: Writes = Writes()


class MatchText(Struct, frozen=True):
    """One text of a part that an allow rule may match."""

    text: str
    program: str | None
    """The literal first word, None if unknown."""
    runs: str = ""
    """An option or action that runs another program or deletes: a prefix rule must not cover it."""
    goes: tuple[str | None, ...] = ()
    """Directories that a global option such as `git -C` enters; None if unknown."""


class GitHistoryRead(Struct, frozen=True):
    """Repository content that git prints: from its history, or from tracked files."""

    text: str
    is_past: bool = False
    paths: tuple[str, ...] = ()
    """Pathspecs that limit the output; empty: everything."""


class ListedOperands(Struct, frozen=True):
    """A listing whose names become operands; run it again, without a shell, to get them."""

    producer_argv: tuple[str, ...]
    consumer_argv: tuple[str, ...]
    null_separated: bool
    line_separated: bool
    r"""Whether each line is one name (`-d '\n'`); else blanks and quotes separate names."""
    cwd: str


class CommandPart(Struct, frozen=True, kw_only=True):
    """One command, or one piece of syntax with an effect."""

    text: str
    kind: str
    """simple, test, arithmetic, function, coproc, header (words and redirections of a compound)."""
    squeezed: str | None = None
    """The words of a simple command, joined by single blanks."""
    words: tuple[str | None, ...] = ()
    """The literal words of a simple command; None for one that is not literal."""
    assignments: str = ""
    """The assignments before the words, as written."""
    is_prefix_harmless: bool = True
    """Whether the assignments before the words have no influence on what runs."""
    redirect_text: str = ""
    rule_texts: tuple[tuple[MatchText, ...], ...] = ()
    """Its texts for allow rules, for every possible state."""
    redirects: tuple[RedirectUse, ...] = ()
    cwds: frozenset[str] = frozenset()
    """Its possible directories; empty if unknown."""
    commands: tuple[PossibleCommand, ...] = ()
    """Everything it could run, the command itself first."""
    mentions: tuple[tuple[str, ...], ...] = ()
    """Words of commands that may execute their arguments: any may name a program."""
    unread: tuple[str, ...] = ()
    """Texts that could not be parsed."""
    unknown: str = ""
    """Why a program is unknown before it runs; empty if all are known."""
    evaluates: str = ""
    """The text that bash would evaluate again; empty if none."""
    rebinds: str = ""
    """Why the meaning of words is open: it changes later ones, or is unknown code."""
    inner_redirects: tuple[PathUse, ...] = ()
    """Files that redirections in inner shell texts open."""
    refusal: str = ""
    """Why it is not provably read-only; empty if it is."""
    reads: tuple[PathUse, ...] = ()
    """The files it reads, as proved."""
    listed: ListedOperands | None = None
    """The listing whose names `xargs` passes to a read-only program."""
    history: GitHistoryRead | None = None
    """The repository content that it prints."""
    edit_refusal: str = "it is not a file command"
    """Why it is not a plain file command that only edits; empty if it is."""
    runs_git: bool = False
    losses: tuple[DestructiveForm, ...] = ()
    removals: tuple[Removal, ...] = ()


class CommandFacts(Struct, frozen=True, kw_only=True):
    """The effects of one command text, independent of rules."""

    text: str
    cwd: str
    home: str
    parts: tuple[CommandPart, ...] = ()
    later_parts: tuple[CommandPart, ...] = ()
    """Parts beyond the limit: only the programs they could run are known."""
    problems: tuple[str, ...] = ()
    """Why the text could not be parsed completely."""
    hidden_character: str = ""
    commands: int = 0
    """The number of commands that the parser sees."""
    disagreement: str = ""
    """How a second parser reads the text differently."""
    programs: frozenset[str] = frozenset()
    """The first words of all commands, without directories, if literal."""
    changes_directory: bool = False
    """Whether it may leave the shell in another directory."""
    only_reads: bool = False
    """Whether it provably changes nothing, wherever its paths are."""
    extent: Extent | None = None
    """Everything it can write, or None if uncertain."""
    meaning_of_one: str | None = None
    """The meaning of exit code 1 if it is an answer and not a failure."""
    meaning_after_cd: str | None = None
    """The same after a `cd` in it failed."""
    printed_file: str | None = None
    """The file that it prints, if it does nothing else."""
