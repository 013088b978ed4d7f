"""Commands tried on a copy of the roots that costs nothing: an overlay that is thrown away.

Belongs here: mounting the overlay, running the command in it, reading what it wrote.
Does not: running commands for good, showing the changes (tools, front ends).
May import: contract, text, disk, session.
"""
