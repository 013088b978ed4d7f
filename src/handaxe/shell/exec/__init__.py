"""The `Shell` port on this machine: commands run, watched, bounded, and never left behind.

- Belongs here: the supervisor and its wardens, the output of a command, its environment.
- Does not: what a command may do (`shell.analysis`, `permission`), the sandbox (`shell.sandbox`),
  the texts for the model (`tools.shell`).
- May import: contract, text, disk.
"""
