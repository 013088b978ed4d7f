"""GIT: which repository git takes, what it would run there, and every git that handaxe starts.

Belongs here: finding a repository as git finds it, judging its configuration, starting git.
Does not: what commands of the model may do (`runtime`), worktrees of agents (`host`).
May import: contract, text, disk, shell.
"""
