"""Tools about the session: plan mode, questions, skills, settings, todos.

Belongs here: one module and one prompt per tool that reads or changes the session.
Does not: work on files or commands.
May import: what `tools` may import.
"""
