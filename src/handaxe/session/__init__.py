"""STATE that outlives one call.

Belongs here: plain objects that a session keeps between calls, each able to become JSON and back.
Does not: decisions about that state, files, processes, the network.
May import: contract, text; nothing of the operating system.
"""
