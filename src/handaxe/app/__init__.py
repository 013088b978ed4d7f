"""WHERE THE PARTS ARE JOINED: sessions, own tools, the public entry points.

Belongs here: what picks implementations for ports and hands them to the runtime.
Does not: the work of a tool, of the pipeline or of a front end.
May import: everything below it.
"""
