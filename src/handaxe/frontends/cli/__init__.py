"""The command line: arguments in, results on stdout, everything else on stderr.

Belongs here: one module per command, and what they share.
Does not: anything a library user would need as well.
May import: everything below `frontends`.
"""
