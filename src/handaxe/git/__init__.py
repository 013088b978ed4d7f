"""Git: find repositories, check their configuration, run git commands.

Belongs here: finding a repository as git does, whether its configuration makes git run programs,
submodules, every git process that handaxe starts for itself.
Does not: git commands of the model (`shell.analysis`), worktrees of agents (`agent.subagents`).
May import: `session` and the layers below it.
"""
