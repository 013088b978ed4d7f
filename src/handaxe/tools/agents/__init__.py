"""Tools for subagents: Agent, SendMessage.

Belongs here: tools that use the port `Agents`.
Does not: how an agent works (`agent`), background jobs in general (`tools.tasks`).
May import: what `tools` may import.
"""
