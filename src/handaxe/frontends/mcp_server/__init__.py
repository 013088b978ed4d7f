"""handaxe as an MCP server, over stdio and HTTP.

Belongs here: the protocol, both transports, tools, results and elicitation as clients see them,
entries for the settings files of clients.
Does not: what tools do (`tools`), arguments of the command line (`frontends.cli`), the MCP client
(`mcp`).
May import: what `frontends` may import; the `mcp` SDK in `http` only.
"""
