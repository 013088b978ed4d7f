"""Safe file primitives, and the `Files` port on top of them.

Belongs here: replacing, deleting and overwriting a file so that a crash leaves the old or the new
content, append-only logs, advisory locks, durability, opening exactly the file that a path names.
Does not: who may write where (`permission`), undo (`undo`), sessions (`storage`).
May import: `text`, `contract`.
"""
