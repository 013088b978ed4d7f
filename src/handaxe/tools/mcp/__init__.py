"""Tools for the resources of MCP servers.

Belongs here: ListMcpResources, ReadMcpResource.
Does not: connections and remote tools (`mcp`).
May import: what `tools` may import.
"""
