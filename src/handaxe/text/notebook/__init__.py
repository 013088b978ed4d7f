"""Jupyter notebooks as text.

Belongs here: the document model, editing one cell in the bytes of the file, text of outputs.
Does not: reading files (`disk`), scaling images (`media`).
May import: the other modules of `text`, and what `text` may import.
"""
