"""Snapshots of whole directory trees before commands that may write anywhere.

Belongs here: listing and watching trees, storing contents outside the project, finding changes.
Does not: the journal and restoring paths (`undo`), running commands (`shell.exec`).
May import: what `undo` may import, nothing else of `undo`.
"""
