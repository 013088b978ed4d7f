"""The interactive agent in a terminal: lines in, streamed answers out.

Belongs here: reading lines, rendering a run, the built-in slash commands.
Does not: what headless runs need as well (`frontends.cli`).
May import: the modules of `frontends.cli` that do not import it, and what `frontends.cli` may
import; rich and prompt_toolkit, when used.
"""

from handaxe.frontends.cli.repl.repl import run_interactive

__all__ = ["run_interactive"]
