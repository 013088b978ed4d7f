"""Sentences the runtime puts into a conversation."""

INTERRUPTED = "[Request interrupted by user]"
INTERRUPTED_TOOLS = "[Request interrupted by user for tool use]"
CUT_OFF = "Your answer was cut off at its length limit. Go on exactly where it stopped."
BROKEN_OFF = "The connection broke while you were answering. Go on exactly where you stopped."


def as_reminder(text: str) -> str:
    """A text that no person wrote, marked as such."""
    return f"<system-reminder>\n{text.strip()}\n</system-reminder>"
