"""Tools that find files and text.

Belongs here: Glob, Grep and what only they need.
Does not: walking directories or running ripgrep (`Search` port), reading files.
May import: contract, text, session, settings.
"""
