"""Parse bash text into syntax, words and expansions.

Belongs here: the grammar, quoting, the syntax model, a second parser to compare with.
Does not: what programs do with their arguments (`shell.analysis.programs`).
May import: the modules of `shell.analysis` that do not import it, and what `shell.analysis` may
import.
"""
