"""Agents that work for an agent: start one, tell one something.

Belongs here: tools over the port `Agents`.
Does not: how an agent works (`agent`), background work in general (`tools.tasks`).
May import: contract, text, session, settings.
"""
