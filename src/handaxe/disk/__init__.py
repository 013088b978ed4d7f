"""Safe file primitives, and the `Files` port on top of them.

Belongs here: atomic replacing, deleting and overwriting, append-only logs, advisory locks,
durability, opening exactly the file that a path names.
Does not: who may write where (`permission`), undo (`undo`), sessions (`storage`).
May import: `text`, `contract`.
"""
