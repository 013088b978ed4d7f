"""Files that a bash command reads and writes, and commands it may start.

Belongs here: write targets, recursive reads, destructive commands, path rules, exit codes.
Does not: the decision (`shell.analysis.decision`), the disk (`shell.exec.preflight_scan`).
May import: `parser` and `programs` beside it, and what `shell.analysis` may import.
"""
