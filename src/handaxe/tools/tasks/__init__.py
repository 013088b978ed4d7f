"""Background work: look at it, wait for it, end it.

Belongs here: tools about work that goes on after its call, whatever started it.
Does not: starting it (`tools.shell`, agents).
May import: contract, text, session, settings.
"""
