"""Subagents: agents that an agent starts.

Belongs here: their types and definition files, spawning, execution, permissions, worktrees.
Does not: the tools that start them (`tools.agents`), their sessions (`app.agent_setup`).
May import: the modules of `agent` that do not import it, and what `agent` may import.
"""
