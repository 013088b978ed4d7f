"""What a user's own code may say before and after a call.

Belongs here: who is told, in which order, and how their answers become one.
Does not: permission rules; running the tool.
May import: contract, text, session, settings.
"""
