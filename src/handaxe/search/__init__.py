"""The `Search` port on this machine: with ripgrep, or in Python where ripgrep is missing.

Belongs here: ripgrep arguments and output, the Python search, pagination, deadlines, long lines,
what a missing path may have meant.
Does not: what the model sees of a result (`tools.search`), who may search (`permission`).
May import: `shell/sandbox` and the layers below it.
"""
