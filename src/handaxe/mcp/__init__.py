"""The MCP client: tools, resources and prompts of other servers.

Belongs here: transports, connections and reconnection, discovery, OAuth, remote tools as `Tool`,
conversion of results.
Does not: starting the servers of a session (`app.services.mcp`), starting programs (port
`Processes`), the tools for resources (`tools.mcp`), handaxe as a server (`frontends.mcp_server`).
May import: `shell/sandbox` and the layers below it; the `mcp` SDK and httpx2, when used.
"""
