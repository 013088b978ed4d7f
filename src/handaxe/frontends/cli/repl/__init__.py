"""The agent at a plain terminal: lines in, streamed answers out.

Belongs here: reading lines, painting a run, the commands that a person types.
Does not: what headless runs need as well (`frontends.cli`).
May import: everything below `frontends`, and `frontends.cli`.
"""

from handaxe.frontends.cli.repl.repl import run_interactive

__all__ = ["run_interactive"]
