"""WHAT IS KEPT ON DISK: the event log, stored results, sessions.

Belongs here: the data directory and everything in it.
Does not: the user's project; deciding what happens.
May import: contract, text, disk, session, settings.
"""
