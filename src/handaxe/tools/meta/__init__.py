"""Tools about the session itself: its settings, its questions, its plans.

Belongs here: one module and one prompt per tool that looks at or steers the session.
Does not: work on files, commands or the web.
May import: contract, text, session, settings.
"""
