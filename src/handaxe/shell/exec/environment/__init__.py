"""The environment of commands.

Belongs here: the user's variables, the PATH of the login shell, the shell snapshot.
Does not: the environment of other children (`process.child_environment`).
May import: the modules of `shell.exec` that do not import it, and what `shell.exec` may import.
"""
