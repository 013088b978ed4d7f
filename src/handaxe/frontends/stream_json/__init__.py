"""One JSON object per line: the agent for programs, in the messages the open SDKs speak.

Belongs here: the messages, the control requests of both sides, and serving a conversation.
Does not: flags, exit codes, text for people (`frontends.cli`).
May import: everything below `frontends`.
"""
