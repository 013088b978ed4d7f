"""State of a session that outlives one call, in memory.

Belongs here: plain objects that convert to JSON and back: directories, read ledger, permission
state, jobs, todos; the registry of ports.
Does not: decisions about that state, files (`storage`), processes, the network.
May import: `schema`, `text`, `contract`; nothing of the operating system.
"""
