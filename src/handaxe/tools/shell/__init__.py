"""Tools that run commands: Bash, Monitor.

Belongs here: both tools, their faults, what they report when a command ends.
Does not: starting processes (port `Shell`), permission (`permission`).
May import: what `tools` may import.
"""
