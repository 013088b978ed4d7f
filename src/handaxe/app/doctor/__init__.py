"""The checks of `handaxe doctor`.

Belongs here: facts about this machine, whether each feature works here, and what to do if not.
Does not: printing the report (`frontends.cli.commands.doctor`).
May import: `app.services` and what `app` may import.
"""
