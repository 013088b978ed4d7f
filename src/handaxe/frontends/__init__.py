"""Front ends: the command line, the MCP server, stream-json.

Belongs here: one package per front end, and what they share: reading lines, signals.
Does not: what tools do or how calls run; a front end only holds a `Session`.
May import: `testing` and the layers below it.
"""
