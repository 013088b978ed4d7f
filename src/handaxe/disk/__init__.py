"""Safe file primitives.

Belongs here: replacing, deleting and overwriting a file so that any crash leaves it old or new,
append-only logs, advisory locks, and what these need to be durable.
Does not: who may write where, text, encodings, undo, sessions; whoever calls picks the thread.
May import: the standard library, msgspec, `handaxe.contract`.
"""
