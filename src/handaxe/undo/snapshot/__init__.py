"""A whole tree as it stood before a command, kept outside the project.

Belongs here: listing trees, watching them, keeping their contents, finding what changed.
Does not: the undo journal and the way back (`handaxe.undo`), running commands.
May import: contract, disk.
"""
