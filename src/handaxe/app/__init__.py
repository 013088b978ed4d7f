"""Sessions and agents for library users, joined from all packages below.

Belongs here: `Session`, `Agent`, the builder that picks an implementation for each port, resume,
rewind, undo commands.
Does not: the work of a tool, of the pipeline, of one feature or of a front end.
May import: `agent` and the layers below it.
"""
