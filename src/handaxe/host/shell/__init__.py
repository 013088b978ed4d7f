"""The `Shell` port on this machine: commands run, watched, bounded, and never left behind.

- Belongs here: the supervisor and its wardens, the output of a command, its environment.
- Does not: what a command may do (`handaxe.shell`, `runtime`), the sandbox (`host.sandbox`), what
  the model is told (`tools.shell`).
- May import: contract, text, disk.
"""
