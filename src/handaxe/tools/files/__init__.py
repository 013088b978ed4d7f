"""Tools that read and change files.

Belongs here: Read, Write, Edit, MultiEdit, EditLines, ApplyPatch, NotebookEdit, Undo, and what
only they need.
Does not: opening files (port `Files`), finding text (`text.replace`).
May import: what `tools` may import.
"""
