"""Shell commands: what they would do, how they are confined, how they run.

Belongs here: the packages `analysis`, `sandbox` and `exec`, each a layer of its own.
Does not: modules of its own; the Bash tool (`tools.shell`).
May import: nothing; each of the three packages has its own rule.
"""
