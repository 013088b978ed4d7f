"""The `Search` port on this machine: ripgrep, and the same in Python where there is none.

Belongs here: running ripgrep, walking directories, reading ignore files, the fallback.
Does not: what an answer looks like to the model (`tools.search`), who may search (`runtime`).
May import: contract, text, disk, session.
"""
