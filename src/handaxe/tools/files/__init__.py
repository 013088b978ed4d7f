"""Tools that read and change files.

Belongs here: Read, Write, Edit and what only they need.
Does not: opening files (`Files` port), finding text (`handaxe.text.replace`).
May import: contract, text, session, settings.
"""
