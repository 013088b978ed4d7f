"""WHO TALKS TO A SESSION: the command line, MCP, stream-json; later terminal UI and web page.

Belongs here: arguments, painting, asking; one package per front end.
Does not: what tools do or how calls run; a front end only holds a `Session`.
May import: everything below.
"""
