"""Tools for what MCP servers hand out beside their own tools.

Belongs here: ListMcpResources, ReadMcpResource.
Does not: connections and remote tools (`bridges/mcp`).
May import: contract, text, session, settings.
"""
