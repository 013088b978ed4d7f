"""Search with ripgrep: text (Grep) and names (Glob).

Belongs here: the ripgrep binary, its processes, its runs for one query, the search of ignored files
when nothing was found.
Does not: the scan of a directory tree (`search.walk`).
May import: `search.walk`, the modules of `search` that do not import it, and what `search` may
import.
"""
