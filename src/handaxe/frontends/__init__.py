"""WHO TALKS TO A SESSION: the command line, and later terminal UI, web page and protocols.

Belongs here: arguments, painting, asking; one package per front end.
Does not: what tools do or how calls run; a front end only holds a `Session`.
May import: everything below.
"""
