"""Directory trees: ignore files, a scan of small trees, safe opening of files below a root.

Belongs here: what depends on the entries of directories.
Does not: the content of files (`search`, `search.rg`).
May import: the modules of `search` that do not import it, and what `search` may import.
"""
