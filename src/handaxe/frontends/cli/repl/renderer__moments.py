"""A call in its moments, as blocks any front end can paint.

A tool says how its title and its result look; the rest looks the same for every tool: waiting,
going on, refused, failed, in one line, or as one of a group.
"""

from collections.abc import Sequence

from handaxe.contract.display import Display, Items, Text
from handaxe.contract.result import ToolResult

_REFUSALS = ("permission.", "hook.")


def render_queued(title: str) -> Display:
    """The call waits for its turn."""
    return (Text(f"{title} (waiting)", "muted"),)


def render_progress(title: str, progress: str) -> Display:
    """The call runs and says how far it is."""
    return (Text(title), Text(progress, "muted"))


def render_rejection(title: str, result: ToolResult) -> Display:
    """The call was not allowed to run."""
    rule = result.decision.rule if result.decision else None
    by = f" (rule {rule})" if rule else ""
    return (Text(f"{title} was not run{by}", "warning"), Text(result.text, "warning"))


def render_failure(title: str, result: ToolResult) -> Display:
    """The call ran into something."""
    return (
        Text(f"{title} failed ({result.code})", "bad"),
        Text(result.text, "bad"),
    )


def render_unsuccessful(title: str, result: ToolResult) -> Display:
    """Refused or failed, whichever it was."""
    is_refusal = (result.code or "").startswith(_REFUSALS)
    return render_rejection(title, result) if is_refusal else render_failure(title, result)


def render_summary(title: str, summary: str) -> Display:
    """A result in one line."""
    return (Text(f"{title}: {summary}" if summary else title),)


def render_group(titles: Sequence[str], results: Sequence[ToolResult | None]) -> Display:
    """Several calls of one message as one list; None stands for a call that still runs."""
    done = sum(result is not None for result in results)
    lines = tuple(f"{_mark(result)} {title}" for title, result in zip(titles, results, strict=True))
    return (Text(f"{done} of {len(titles)} calls done"), Items(lines))


def _mark(result: ToolResult | None) -> str:
    if result is None:
        return "…"
    return "✓" if result.ok else "✗"
