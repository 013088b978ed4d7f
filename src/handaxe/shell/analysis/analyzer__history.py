"""What of a repository's content a git command prints: its past, or the files it tracks."""

from __future__ import annotations

from handaxe.shell.analysis.facts import GitHistoryRead
from handaxe.shell.analysis.parser.expansion import Field
from handaxe.shell.analysis.program_tables import split_names
from handaxe.shell.analysis.programs.subcommands import skip_git_globals

_PATCHES = split_names(
    "-p -u --patch --patch-with-stat --patch-with-raw -c --cc --dd --remerge-diff -m --binary "
    "--full-index --word-diff --color-words --function-context -W"
)
_NAMES_ONLY = split_names(
    "--stat --numstat --shortstat --name-only --name-status --no-patch -s --summary --raw --quiet "
    "--dirstat --compact-summary"
)
_PAST = split_names("show whatchanged format-patch cat-file diff-tree diff-index")
_LOGS = split_names("log reflog shortlog rev-list")
_NOW = split_names("diff diff-files")


def find_history(fields: tuple[Field, ...]) -> GitHistoryRead | None:
    """What a git command prints of the repository, if it prints content at all."""
    rest = skip_git_globals(list(fields[1:]))
    if not rest:
        return None
    name, args = rest[0].value, rest[1:]
    words = [field.value for field in args]
    text = " ".join(field.text for field in fields)
    paths = tuple(words[words.index("--") + 1 :]) if "--" in words else ()
    has_patch = any(
        word in _PATCHES or word.startswith(("-L", "-U", "--unified")) for word in words
    )
    if name == "stash" and (has_patch or words[:1] == ["show"]):
        return GitHistoryRead(text, is_past=True)
    if name in _LOGS and has_patch:
        return GitHistoryRead(text, is_past=True, paths=paths)
    if not has_patch and any(word.partition("=")[0] in _NAMES_ONLY for word in words):
        return None
    if name in _PAST:
        # `rev:path` prints one file, which is judged as a read.
        named = [word for word in words if not word.startswith(("-", ":/"))]
        is_file = bool(named) and all(":" in word for word in named)
        return None if is_file else GitHistoryRead(text, is_past=True, paths=paths)
    # A revision may be any commit, of other branches as well.
    given = words[: words.index("--")] if "--" in words else words
    is_past = any(not word.startswith("-") for word in given)
    return GitHistoryRead(text, is_past=is_past, paths=paths) if name in _NOW else None
