"""PORTS DONE ON THIS MACHINE.

Belongs here: the implementation of each port that touches this machine's files, programs, clock.
Does not: deciding whether something may be done; the sessions' own data (`storage`).
May import: contract, text, disk, session, settings.
"""
