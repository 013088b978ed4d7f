"""What a search did not look at, in sentences."""

from typing import Any

from handaxe.contract.ports.search import SkippedFiles
from handaxe.text.escape__counting import format_count
from handaxe.tools.search.search_paths import format_path

MAX_NAMED = 5


def describe_skipped(skipped: SkippedFiles, *, verb: str) -> list[str]:
    """One sentence per reason; nothing about what was not left out."""
    notes: list[str] = []
    if skipped.too_large:
        notes.append(
            f"{format_count(skipped.too_large, 'file')} of more than 256 MiB not {verb}; name such "
            "a file as path to search it."
        )
    if skipped.unreadable:
        notes.append(f"{format_count(skipped.unreadable, 'file or directory')} could not be read.")
    if skipped.withheld:
        least = "at least " if skipped.withheld_is_least else ""
        notes.append(
            f"Not {verb}: {least}{format_count(skipped.withheld, 'file')} such as .env. Such files "
            "may hold secrets, and Read asks for them."
        )
    if skipped.denied:
        notes.append("Files that a Read rule denies are left out.")
    return notes


def to_skipped_data(skipped: SkippedFiles) -> dict[str, Any]:
    """The same as data, with the reasons that were counted."""
    counts = {
        "ignored": skipped.ignored,
        "binary": skipped.binary,
        "tooLarge": skipped.too_large,
        "unreadable": skipped.unreadable,
        "links": skipped.links,
        "withheld": skipped.withheld,
    }
    known: dict[str, Any] = {name: count for name, count in counts.items() if count is not None}
    unknown = [name for name, count in counts.items() if count is None]
    if unknown:
        known["notCounted"] = unknown
    least = {
        "ignored": skipped.ignored_is_least and skipped.ignored,
        "withheld": skipped.withheld_is_least and skipped.withheld,
    }
    if any(least.values()):
        known["atLeast"] = [name for name, is_least in least.items() if is_least]
    return {**known, "denied": skipped.denied}


def describe_timeout(timeout_s: float, unvisited: list[str], cwd: str) -> str:
    """That the time was up, and where to go on."""
    stopped = f"Stopped after {timeout_s:g} s; this is what was found until then."
    if not unvisited:
        return f"{stopped} Narrow the search with path, glob or type."
    named = ", ".join(format_path(path, cwd) for path in unvisited[:MAX_NAMED])
    more = f" and {len(unvisited) - MAX_NAMED:,} more" if len(unvisited) > MAX_NAMED else ""
    return f"{stopped} To go on, search these with path: {named}{more}."


def format_notes(notes: list[str]) -> str:
    """Sentences about an answer, told apart from the answer."""
    return "\n".join(f"[{note}]" for note in notes)
