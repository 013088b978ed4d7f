"""`CommandFacts`: everything that is known of a bash command from its text, as plain data.

Made once per text by `analyze`. Verdicts, effects, undo, the sandbox, `explain`, proposals and
displays read it; none of them reads the command itself. Nothing in it depends on rules, on the
mode or on what is on the disk.
"""

from __future__ import annotations

from msgspec import Struct

from handaxe.contract.effects import Extent
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.paths import PathUse


class RecursiveRead(Struct, frozen=True):
    """A read of everything below a place."""

    use: PathUse
    shown_only: bool = False
    """The reader leaves out hidden files."""
    without_files: tuple[str, ...] = ()
    """Patterns of file names that are left out."""
    without_directories: tuple[str, ...] = ()
    only_files: tuple[str, ...] = ()
    """Patterns of file names that alone are read; none: all."""


class RedirectUse(Struct, frozen=True):
    """What a redirection does: nothing (free), a file use, or something the text does not say."""

    text: str
    uses: tuple[PathUse, ...] = ()
    problem: str = ""
    writes: bool = False
    replaces: bool = False
    """Whether the file loses what it held."""


class DestructiveForm(Struct, frozen=True):
    """A destructive form in a command, with what it destroys in plain words."""

    text: str
    form: str
    reason: str
    irreversible: bool = False
    """Whether it is irreversible: it reaches another machine, a disk, a remote store."""
    paths: tuple[str, ...] = ()
    in_checkout: bool = False
    """Whether it changes the working tree it runs in and nothing else."""
    targets: tuple[PathUse, ...] = ()
    """Places that it changes with everything below them."""


class Removal(Struct, frozen=True):
    """A target of `rm` and its like: where it may be, or None where the text does not say."""

    text: str
    program: str
    target: str
    path: str | None
    is_open: bool = False
    """Whether the target may be anything: an unknown word that leads somewhere."""


class FileUses(Struct, frozen=True):
    """The files of one command, as far as its words tell."""

    uses: tuple[PathUse, ...] = ()
    sweeps: tuple[RecursiveRead, ...] = ()
    holds_files: bool = False
    """Whether an operand that is not known before it runs is certainly a file."""
    opaque: tuple[PathUse, ...] = ()
    """Files that certainly are read and that the text does not name."""
    moved: tuple[PathUse, ...] = ()
    """Places that are moved with everything below them."""
    may_write: bool = True
    """Whether the program is not known to only read its operands."""
    changes_tree: bool = False
    """Whether it changes files that its input names and its words do not: `git merge`, `patch`."""


class TreeCopy(Struct, frozen=True):
    """A tree or an archive whose names a command writes at a target."""

    text: str
    source: str | None
    """The tree, or the archive; None where the text does not say."""
    target: str | None
    name: str = ""
    """Where the target is a directory, the tree gets this name in it; empty: its content only."""
    is_archive: bool = False
    makes_link: bool = False
    """Whether a link to the source is made instead of a copy."""


class Writes(Struct, frozen=True):
    """The files a command surely writes, by their resulting paths."""

    uses: tuple[PathUse, ...] = ()
    trees: tuple[TreeCopy, ...] = ()
    reads: tuple[PathUse, ...] = ()
    """The files whose content it puts there."""


class PossibleCommand(Struct, frozen=True):
    """A command that could run; `certain` when the text leaves no other reading."""

    fields: tuple[Field, ...]
    certain: bool
    cwds: frozenset[str] = frozenset()
    """Where it may run; none when that is not known."""
    program: str | None = None
    """The program's name without its directory, or None when the text does not say."""
    consists_of: frozenset[str] = frozenset()
    """Programs that it runs in turn, being a script of them."""
    opened: tuple[PathUse, ...] = ()
    """Files that a wrapper itself opens, or that what it is fed may name."""
    files: FileUses = FileUses()
    writes: Writes = Writes()


class MatchText(Struct, frozen=True):
    """One reading of a part that an allow rule may match."""

    text: str
    program: str | None
    """The literal first word, None where the text does not say."""
    runs: str = ""
    """An option or action that makes the program run another one or delete: a prefix rule does not
    cover it."""
    goes: tuple[str | None, ...] = ()
    """Directories that a global option such as `git -C` enters; None where it is not known."""


class GitHistoryRead(Struct, frozen=True):
    """Content of a repository that git prints: of all its past, or of the files it tracks now."""

    text: str
    is_past: bool = False
    paths: tuple[str, ...] = ()
    """Pathspecs that limit what is printed; none: everything."""


class ListedOperands(Struct, frozen=True):
    """A listing whose names become operands: make it again, without a shell, to know them."""

    producer_argv: tuple[str, ...]
    consumer_argv: tuple[str, ...]
    null_separated: bool
    line_separated: bool
    """Whether a line is one name (`-d '\\n'`); else blanks and quotes count too."""
    cwd: str


class CommandPart(Struct, frozen=True, kw_only=True):
    """One command, or one piece of syntax that does something."""

    text: str
    kind: str
    """simple, test, arithmetic, function, coproc, header (words and redirections of a compound)."""
    squeezed: str | None = None
    """The words of a simple command with one blank between them."""
    words: tuple[str | None, ...] = ()
    """The literal words of a simple command; None for one that is not literal."""
    assignments: str = ""
    """What is set before the words, as it is written."""
    is_prefix_harmless: bool = True
    """Whether what is set before the words leaves what runs as it is."""
    redirect_text: str = ""
    rule_texts: tuple[tuple[MatchText, ...], ...] = ()
    """For every state the part may run in, its readings for allow rules."""
    redirects: tuple[RedirectUse, ...] = ()
    cwds: frozenset[str] = frozenset()
    """Where it may run; none when that is not known."""
    commands: tuple[PossibleCommand, ...] = ()
    """Everything it could run, the command itself first."""
    mentions: tuple[tuple[str, ...], ...] = ()
    """Words of commands that may execute their arguments: any may name a program that runs."""
    unread: tuple[str, ...] = ()
    """Texts that could not be parsed."""
    unknown: str = ""
    """Why some program is not known before it runs; empty when every program is."""
    evaluates: str = ""
    """Which text bash would evaluate again; empty when none."""
    rebinds: str = ""
    """What leaves the meaning of words open: it changes later ones, or is unknown code."""
    inner_redirects: tuple[PathUse, ...] = ()
    """Files that redirections inside inner shell texts open."""
    refusal: str = ""
    """Why it is not proved to only read; empty when it is."""
    reads: tuple[PathUse, ...] = ()
    """What the proof rests on: the files it reads."""
    listed: ListedOperands | None = None
    """The listing whose names `xargs` gives to a program that only reads them."""
    history: GitHistoryRead | None = None
    """What of a repository's history or index it prints."""
    edit_refusal: str = "it is not a file command"
    """Why it is not a plain file command that only edits; empty when it is."""
    runs_git: bool = False
    losses: tuple[DestructiveForm, ...] = ()
    removals: tuple[Removal, ...] = ()


class CommandFacts(Struct, frozen=True, kw_only=True):
    """What one command text does, whatever the rules say."""

    text: str
    cwd: str
    home: str
    parts: tuple[CommandPart, ...] = ()
    later_parts: tuple[CommandPart, ...] = ()
    """Parts beyond the limit of what is analysed whole: only what they could run is known."""
    problems: tuple[str, ...] = ()
    """Why the text could not be read to its end."""
    hidden_character: str = ""
    commands: int = 0
    """How many commands the parser sees."""
    disagreement: str = ""
    """What a second reader of the same text sees otherwise."""
    programs: frozenset[str] = frozenset()
    """The first words of all commands, without their directories, as far as they are literal."""
    changes_directory: bool = False
    """Whether it may leave the shell in another directory."""
    only_reads: bool = False
    """Whether it was proved to change nothing, wherever its paths are."""
    extent: Extent | None = None
    """Everything it can write, or None if that is not certain."""
    meaning_of_one: str | None = None
    """What exit code 1 says, where it is an answer and not a failure."""
    meaning_after_cd: str | None = None
    """The same where a `cd` in it has failed."""
    printed_file: str | None = None
    """The one file that it prints and does nothing else."""
