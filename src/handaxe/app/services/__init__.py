"""The parts of a session that start and stop with it: one module per feature.

Belongs here: joining one feature to a session: hooks, MCP servers, the shell, the sandbox, state,
configuration, crash recovery.
Does not: what a feature can do without a session (`hooks`, `mcp`, `shell`, `undo`).
May import: the modules of `app` that do not import it, and what `app` may import.
"""
