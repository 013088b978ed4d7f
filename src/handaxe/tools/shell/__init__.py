"""Commands: run them, watch them.

Belongs here: Bash and Monitor, what they say of a command's end, their faults.
Does not: starting processes (the `Shell` port), permission (`runtime`).
May import: contract, text, session, settings, shell.
"""
