"""The tools of a session: which exist, which the model sees, which are deferred.

Belongs here: finding a tool by name or alias, filtering the list, deferred schemas, edit formats.
Does not: running a tool (`pipeline`), deciding about a call (`permission`).
May import: `shell/sandbox` and the layers below it.
"""
