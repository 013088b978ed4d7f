"""Instructions and notes that an agent gets beside its prompt.

Belongs here: CLAUDE.md and AGENTS.md files, instructions of nested directories, memory that lasts
from one run to the next.
Does not: the text of the system prompt (`agent.system_prompt`), skills (`skills`).
May import: the modules of `agent` that do not import it, and what `agent` may import.
"""
