"""The one analysis of a bash command: its text in, `CommandFacts` out.

Belongs here: reading a text, and everything that is derived from it in one go.
Does not: verdicts (`handaxe.shell.decide`), running anything, touching the disk.
May import: `handaxe.shell`, `handaxe.contract`, `handaxe.text`, msgspec.
"""
