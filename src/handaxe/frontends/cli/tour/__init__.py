"""`handaxe tour`: an agent at work on a throw-away project, chapter by chapter.

Belongs here: the story as data, walking through it, showing it.
Does not: the command's place on the command line (`frontends.cli.commands`).
May import: everything below `frontends`, and `frontends.cli`.
"""
