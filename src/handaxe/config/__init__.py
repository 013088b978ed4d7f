"""CONFIGURATION as one typed model.

Belongs here: every option with its meaning and default, and how options are read.
Does not: anything that acts on an option.
May import: contract, text, disk.
"""
