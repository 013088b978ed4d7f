"""The commands of the command line: one module per command, named after it.

Belongs here: `configure(parser)` and `run(arguments)` of each command.
Does not: anything that two commands need (`frontends.cli`).
May import: the modules of `frontends.cli` that do not import it, and what `frontends.cli` may
import.
"""
