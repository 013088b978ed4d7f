"""The data directory: what handaxe keeps on disk for each session.

Belongs here: the event log, the list of sessions, stored results, task lists, logins, statistics.
Does not: the undo journal (`undo`), files of the project, settings files (`config`).
May import: `session` and the layers below it.
"""
