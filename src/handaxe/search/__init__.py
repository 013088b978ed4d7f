"""The `Search` port on this machine, with ripgrep.

Belongs here: ripgrep arguments and output, pagination, deadlines, long lines, paths that a missing
path may have meant.
Does not: what the model sees of a result (`tools.search`), who may search (`permission`).
May import: `shell/sandbox` and the layers below it.
"""
