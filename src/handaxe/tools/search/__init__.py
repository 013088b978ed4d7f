"""Tools that find files and text: Glob, Grep.

Belongs here: both tools, the format of their results, hints for patterns.
Does not: walking directories or running ripgrep (port `Search`), reading files.
May import: what `tools` may import.
"""
