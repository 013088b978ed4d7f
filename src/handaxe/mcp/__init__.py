"""The MCP client: other people's tools, resources and prompts, on the official SDK.

Belongs here: connections and their healing, remote tools as `Tool`, results made ours.
Does not: who may start (`app`), starting programs (port `Processes`), the tools that list and
read resources (`tools/mcp`).
May import: contract, text, settings; the `mcp` SDK, inside functions or below `connection`.
"""
