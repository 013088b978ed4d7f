"""Contents compared for people: what a call changed, what somebody else changed."""

from handaxe.contract.ports.undo import ChangeKind
from handaxe.undo.journal_files.records import PathState

SHOWN_BYTES = 1 << 20


def format_difference(before: bytes | None, after: bytes | None, path: str) -> str:
    """A unified diff; empty where one of the two is large or not text."""
    from handaxe.text.diff import format_unified_diff
    from handaxe.text.encoding import NotText, decode

    if before is None or after is None or max(len(before), len(after)) > SHOWN_BYTES:
        return ""
    try:
        return format_unified_diff(
            decode(before).text, decode(after).text, old_name=path, new_name=path
        )
    except NotText:
        return ""


def classify_change(found: PathState, left: PathState) -> ChangeKind:
    """What happened to a path, in one word."""
    if found.kind == "absent":
        return "created"
    if left.kind == "absent":
        return "deleted"
    return "mode" if found.is_same(left) else "modified"
