"""A command that showed a whole file counts as having read it, so that Edit may follow.

Only where it is certain: one `cat` of one file, and what it printed is the file as it is now.
"""

from handaxe.config.settings import Settings
from handaxe.contract.context import ToolContext
from handaxe.contract.faults import ToolFault
from handaxe.contract.ports.files import Files
from handaxe.contract.ports.shell import RunningCommand
from handaxe.session.read_ledger import ReadLedger
from handaxe.session.workdir import Workdir
from handaxe.shell.analysis.analyzer import analyze
from handaxe.text.line_window import split_lines
from handaxe.text.paths import normalize


async def record_read(command: str, running: RunningCommand, ctx: ToolContext) -> None:
    """Remember the file that the command showed, if it showed one whole."""
    shown = analyze(command).printed_file
    ledger = ctx.find(ReadLedger)
    if shown is None or ledger is None:
        return
    most = ctx[Settings].shell.max_inline_chars
    output = running.output(most)
    if output.tail or output.is_binary:
        return
    path = normalize(shown if shown.startswith("/") else f"{ctx.cwd}/{shown}")
    try:
        loaded = await ctx[Files].load(ctx[Workdir].resolve(path), max_bytes=4 * most)
    except ToolFault:
        return
    if loaded.data == output.head.encode():
        lines = len(split_lines(output.head))
        ledger.record_read(loaded.version, content=loaded.data, total_lines=lines)
