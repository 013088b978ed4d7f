"""The stream-json protocol of the agent SDKs: one JSON object per line.

Belongs here: messages, control requests in both directions, serving a conversation.
Does not: flags, exit codes, text for people (`frontends.cli`).
May import: what `frontends` may import.
"""
