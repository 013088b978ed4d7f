"""The agent loop: ask the model, run its calls, repeat.

Belongs here: the loop and its limits, the conversation, compaction, the system prompt, output
styles, structured output, hooks around a run.
Does not: wire formats of model vendors (`models`), running one call (`pipeline`), terminals
(`frontends`).
May import: `tools`, `pipeline` and the layers below them.
"""
