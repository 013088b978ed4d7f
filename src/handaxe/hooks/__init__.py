"""Hooks: programs, HTTP requests and functions of the user that run on events.

Belongs here: configuration, event types, dispatch, command and HTTP hooks, parsing their output,
merging their outcomes.
Does not: permission rules (`rules`), hooks that ask a model (`agent.model_hooks`), when an event
of a call is sent (`pipeline`).
May import: `shell/sandbox` and the layers below it.
"""
