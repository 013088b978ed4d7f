"""`handaxe tour`: an agent at work in a temporary project, chapter by chapter.

Belongs here: the story as data, running it, showing it.
Does not: the command itself (`frontends.cli.commands.tour`).
May import: the modules of `frontends.cli` that do not import it, and what `frontends.cli` may
import.
"""
