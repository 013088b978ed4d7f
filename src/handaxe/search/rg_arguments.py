"""The command line of ripgrep for a query; text of the model is data, never an option."""

import secrets
from collections.abc import Iterable

import msgspec

from handaxe.contract.ports.search import VERSION_CONTROL, BadQuery, QueryPart, TextQuery
from handaxe.text.gitignore import escape

NO_CONFIG = "--no-config"
MAX_PATTERN_BYTES = 60_000
TOO_LARGE_MIB = 256
PREVIEW_BYTES = 2_000


class MatchMarks(msgspec.Struct, frozen=True):
    """Random marks that ripgrep puts around every match, so that no file can contain them."""

    start: bytes
    end: bytes
    gap: bytes
    """Marks where handaxe left out a part of a very long line."""

    @classmethod
    def create(cls) -> "MatchMarks":
        """New marks for one search."""
        token = secrets.token_hex(6).encode()
        return cls(*(b"\x1d" + kind + token + b"\x1d" for kind in (b"S", b"E", b"G")))


class RipgrepOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How one run differs from a plain run for the query."""

    is_sorted: bool = False
    is_prompt: bool = False
    """Writes every line as soon as it is found."""
    one_thread: bool = False
    saves_memory: bool = False
    """Skips the largest files; a file that the query names is shown without marks."""
    with_ignored: bool = False
    without_parents: bool = False
    in_binary: bool = False
    counts_only: bool = False
    asks_why: bool = False
    """Lists the skipped entries, which is slow if there are many."""
    max_per_file: int | None = None
    encoding: str | None = None
    """The encoding of the files, if ripgrep would not detect it."""
    without: tuple[str, ...] = ()
    """Files and directories below the root to skip."""
    lists_files: bool = False
    """Lists the files that a search would read."""
    max_depth: int | None = None
    has_no_filter: bool = False
    """Leaves out the glob and the type of the query."""
    finds_foreign: bool = False
    """Lists the files with bytes beyond ASCII instead of matches."""


ANY_HIGH_BYTE = r"(?-u)[\x80-\xff]"


def build_command(
    program: str,
    query: TextQuery,
    targets: Iterable[str],
    manner: RipgrepOptions,
    marks: MatchMarks,
) -> list[str]:
    """The whole command; `targets` are relative to the directory ripgrep runs in."""
    return [
        program,
        NO_CONFIG,
        "--color=never",
        "--hidden",
        "--no-require-git",
        "--no-ignore-global",
        "--no-ignore-exclude",
        "--crlf",
        "--null",
        "--with-filename",
        *_build_output_options(query, manner, marks),
        *_build_filter_options(query, manner),
        *_build_run_options(query, manner),
        *_build_pattern_options(query, manner),
        "--",
        *targets,
    ]


def check_arguments(query: TextQuery) -> None:
    """Raise `BadQuery` for text that no command line can contain."""
    parts: tuple[tuple[QueryPart, str | None], ...] = (
        ("pattern", query.pattern),
        ("glob", query.glob),
        ("type", query.file_type),
    )
    for part, text in parts:
        if text is None:
            continue
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise BadQuery(part, f"the {part} holds half of a UTF-16 pair") from None
        if "\0" in text:
            raise BadQuery(part, f"the {part} holds a NUL character")
        if size > MAX_PATTERN_BYTES:
            raise BadQuery(part, f"the {part} is longer than {MAX_PATTERN_BYTES:,} bytes")


def _build_pattern_options(query: TextQuery, manner: RipgrepOptions) -> Iterable[str]:
    if not manner.lists_files:
        yield f"--regexp={ANY_HIGH_BYTE if manner.finds_foreign else query.pattern}"


def _build_output_options(
    query: TextQuery, manner: RipgrepOptions, marks: MatchMarks
) -> Iterable[str]:
    if manner.lists_files:
        yield "--files"
        if manner.max_depth is not None:
            yield f"--max-depth={manner.max_depth}"
        return
    if manner.counts_only or (query.mode == "count" and not manner.finds_foreign):
        yield "--count"
        return
    if query.mode == "files" or manner.finds_foreign:
        yield "--files-with-matches"
        return
    yield "--line-number"
    if is_json_needed(query):
        yield "--json"
    elif manner.saves_memory and query.is_file:
        yield from ("--heading", f"--max-columns={PREVIEW_BYTES}", "--max-columns-preview")
    else:
        yield "--heading"
        yield f"--replace={marks.start.decode()}${{0}}{marks.end.decode()}"
    if query.has_context:
        yield from (f"--before-context={query.before}", f"--after-context={query.after}")


def _build_filter_options(query: TextQuery, manner: RipgrepOptions) -> Iterable[str]:
    if not query.respect_ignore or manner.with_ignored:
        yield "--no-ignore"
    elif manner.without_parents:
        yield "--no-ignore-parent"
    if query.glob is not None and not manner.has_no_filter:
        yield f"--glob={make_glob_relative(query.glob, query.root)}"
    if query.file_type is not None and not manner.has_no_filter:
        yield f"--type={query.file_type}"
    # The last matching glob decides, so these come after the glob of the query.
    yield from (f"--glob=!{name}" for name in VERSION_CONTROL)
    yield from (f"--glob=!/{escape(path)}" for path in manner.without)


def _build_run_options(query: TextQuery, manner: RipgrepOptions) -> Iterable[str]:
    if query.ignore_case:
        yield "--ignore-case"
    if query.multiline:
        yield from ("--multiline", "--multiline-dotall")
    if manner.is_sorted:
        yield "--sort=path"
    if manner.is_prompt:
        yield "--line-buffered"
    if manner.one_thread:
        yield "--threads=1"
    if query.is_file:
        # A mapped file counts as memory, so only a run with much memory maps it.
        yield "--mmap" if manner.saves_memory else "--no-mmap"
    elif manner.saves_memory:
        yield f"--max-filesize={TOO_LARGE_MIB}M"
    if manner.in_binary:
        yield "--binary"
    if manner.encoding is not None:
        yield f"--encoding={manner.encoding}"
    if manner.max_per_file is not None:
        yield f"--max-count={manner.max_per_file}"
    if manner.asks_why:
        yield "--debug"


def is_json_needed(query: TextQuery) -> bool:
    """Whether marks do not suffice: they break multi-line matches and shift columns."""
    return query.multiline or query.only_matching


def make_glob_relative(glob: str, root: str) -> str:
    """A glob relative to the search directory; it may be an absolute path there."""
    sign, body = ("!", glob[1:]) if glob.startswith("!") else ("", glob)
    prefix = root.rstrip("/") + "/"
    return sign + (body[len(prefix) - 1 :] if body.startswith(prefix) else body)
