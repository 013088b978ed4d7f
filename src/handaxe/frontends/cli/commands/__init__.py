"""One module per command; its name is the command's.

Belongs here: a `configure(parser)` and a `run(arguments)` each.
Does not: anything two commands need (`handaxe.frontends.cli`).
May import: everything below `frontends`.
"""
