"""Walk directory trees with ignore files.

Belongs here: the walk, ignore files, Glob, the survey of ignored files, the cache of trees.
Does not: the content of files (`search`, `search.rg`).
May import: the modules of `search` that do not import it, and what `search` may import.
"""
