"""The commands: one module per command, named after it.

Belongs here: `run(arguments)` of each command.
Does not: arguments and help texts (`frontends.cli.command_pages`), what two commands need.
May import: the modules of `frontends.cli` that do not import it, and what `frontends.cli` may
import.
"""
