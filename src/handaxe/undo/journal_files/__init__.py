"""The files of the undo journal: their records, reading them, and which session has them open.

Belongs here: record types, the scan of a journal, calls built from records, the key of the record.
Does not: when a change is recorded (`undo.checkpoints`), restoring paths (`undo.restore`).
May import: `undo.snapshot`, and what `undo` may import.
"""
