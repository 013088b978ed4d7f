"""JSON Schema of tool input: make it from Python types, validate input against it.

Belongs here: schemas from types, validation and lenient reading of input, repair of foreign
schemas, tool definitions and results in the format of each provider.
Does not: requests to providers (`models`), which tools are sent (`catalog`).
May import: `text`, `contract`.
"""
