"""handaxe as an MCP server: a session's tools for other people's agents.

Belongs here: the protocol's words, its two transports, and what clients are told of tools,
results and questions; the entries that clients want in their settings files.
Does not: what tools do, and arguments of the command line (`handaxe.frontends.cli`).
May import: everything below `frontends`; the official SDK in `http` only.
"""
