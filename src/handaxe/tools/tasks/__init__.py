"""Tools for the task list and for background jobs.

Belongs here: TaskCreate, TaskGet, TaskList, TaskUpdate, TaskOutput, TaskStop.
Does not: storing tasks (`storage`), starting commands (`tools.shell`).
May import: what `tools` may import.
"""
