"""Signs for a terminal that a hook may have written for it: titles, notices, the bell."""

import re

MAX_SEQUENCE_CHARS = 4_000
# Titles (0, 1, 2), notices (9, 99, 777) and the bell; nothing that moves, paints, links or copies.
_HARMLESS = re.compile(r"(?:\x1b\](?:0|1|2|9|99|777);[^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)|\x07)+")


def filter_terminal_sequence(sequence: str | None) -> str:
    """The sequence, if all of it is allowed; otherwise nothing."""
    if not sequence or len(sequence) > MAX_SEQUENCE_CHARS or _HARMLESS.fullmatch(sequence) is None:
        return ""
    return sequence
