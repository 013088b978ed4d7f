"""Permission: decide whether a call may run.

Belongs here: the policy of a session, `decide`, reasons, protected paths, saved rules, prompts,
suggested rules.
Does not: the grammar of rules (`rules`), parsing bash commands (`shell.analysis`), when a call is
checked (`pipeline`).
May import: `shell/sandbox` and the layers below it.
"""
