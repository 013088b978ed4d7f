"""Which tools exist, which are on offer here, and under which names.

Belongs here: look-up, the funnel from all tools to the offered ones, presets.
Does not: running a tool, deciding about a call.
May import: contract, text, session, settings.
"""
