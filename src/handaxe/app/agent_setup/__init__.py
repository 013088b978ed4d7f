"""Set up the agents of a session.

Belongs here: their prompts, their loop context, the sessions and resources of subagents.
Does not: the loop itself (`agent`), spawning and limits of subagents (`agent.subagents`).
May import: `app.services`, the modules of `app` that do not import it, and what `app` may import.
"""
