"""`handaxe tour`: an agent at work on a throw-away project; a scripted model, no network."""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

from handaxe.frontends.cli.exit_codes import DONE, FAILED
from handaxe.frontends.cli.render import BlockRenderer, write_out

NEXT = """
What to try next, in a project of yours:

   At the command line
      handaxe call Grep pattern=TODO output_mode=content       one call, no model
      handaxe                                                  an agent in the terminal
      handaxe -p "Which functions have no test?"               one answer, for scripts
      handaxe history && handaxe undo                          what was changed, and back
   From another agent, over MCP
      handaxe mcp install claude-code --write                  or codex, cursor, vscode, zed, ...
   In a Python program
      async with handaxe.Session(".") as session:              the tools, with your own loop
          await session.call("Read", file_path="README.md")
      async with handaxe.Agent("sonnet", root=".") as agent:   the loop too
          print((await agent.ask("What is this?")).result)

An agent needs a model: set ANTHROPIC_API_KEY or OPENAI_API_KEY, or OPENAI_BASE_URL for a server
of your own. `handaxe doctor` says what this machine can do.
"""


def run(arguments: argparse.Namespace) -> int:  # noqa: ARG001 - it takes no arguments
    """Walk through the story; 0 if everything ended as it says."""
    from handaxe.frontends.cli.tour.page import TourPage, load_story
    from handaxe.frontends.cli.tour.runner import TourRunner

    if reconfigure := getattr(sys.stdout, "reconfigure", None):
        # Where there is no arrow, a question mark will do.
        reconfigure(errors="replace")
    story = load_story()
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="handaxe-tour-") as place:
        project, home = Path(place).resolve() / "project", Path(place).resolve() / "home"
        project.mkdir()
        page = TourPage(Path(place).resolve(), BlockRenderer.create_for_stdout())
        page.line(
            f"A throw-away project, an agent, and a model that follows a script: "
            f"{len(story.chapter)} chapters.",
            margin="",
        )
        walk = TourRunner(story, project, page)
        went_well = asyncio.run(walk.go(home))
    took_s = time.perf_counter() - began_s
    write_out(f"\n{walk.calls} calls in {took_s:.1f} s; the project is gone again.\n")
    if not went_well:
        write_out("Something ended otherwise than the tour says; `handaxe doctor` may help.\n")
        return FAILED
    write_out(NEXT)
    return DONE
