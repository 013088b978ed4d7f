"""Tools for tasks and background work.

Belongs here: the shared task list, and watching and ending what runs in the background.
Does not: keeping tasks (`storage`), starting programs (the shell family).
May import: contract, text, session, settings.
"""
