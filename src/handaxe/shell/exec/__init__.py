"""The `Shell` port on this machine: run commands and end every process they start.

Belongs here: the shell of a session, capture and quotas of output, background jobs, dry runs, the
scan of the disk before a command.
Does not: what a command may do (`shell.analysis`, `permission`), the sandbox (`shell.sandbox`),
supervisor and workers (`process`), texts for the model (`tools.shell`).
May import: `shell/sandbox` and the layers below it.
"""
