"""Interfaces between tools and the machine.

Belongs here: one abstract class per port (files, search, shell, model, undo) and its value types.
Does not: any implementation (`disk`, `search`, `shell.exec`, `media`, `models` and others).
May import: the other modules of `contract`.
"""
