"""The command line: arguments in, results on stdout, everything else on stderr.

Belongs here: options, exit codes, rendering, permission prompts, headless runs.
Does not: anything that a library user needs as well (`app`).
May import: the other front ends, and what `frontends` may import.
"""
