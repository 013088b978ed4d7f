"""HOW A CALL RUNS.

Belongs here: which tools are on offer, whether a call may run, hooks around it, and the order of
all that.
Does not: what any tool does, how a file is opened, a process started or a question painted.
May import: contract, text, disk, session, settings; never tools, bridges, models, host, storage.
"""
