"""TOOLS AND DATA FROM OTHER PROTOCOLS.

Belongs here: clients of servers that offer tools, as tools of ours; one folder per protocol.
Does not: being a server ourselves (`frontends`), permission, running calls (`runtime`).
May import: session, settings, text, disk, contract.
"""
