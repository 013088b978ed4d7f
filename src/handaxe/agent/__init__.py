"""THE LOOP: ask the model, run its calls, repeat.

Belongs here: the loop and its limits, the system prompt, compaction, sub-agents.
Does not: vendors' wire formats (`models`), running one call (`runtime`), terminals (`frontends`).
May import: runtime, session, settings, text, contract.
"""
