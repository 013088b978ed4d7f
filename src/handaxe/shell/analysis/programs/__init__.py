"""The effects of single programs, by their options and operands.

Belongs here: tables of programs (TOML), options, wrappers, proofs that a command only reads.
Does not: the files of a whole command (`shell.analysis.effects`).
May import: `parser` beside it, and what `shell.analysis` may import.
"""
