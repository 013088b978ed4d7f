"""The result of a dry run."""

from handaxe.contract.display import Block, Diff, Items, Text
from handaxe.contract.ports.dry_run import Preview
from handaxe.contract.ports.shell import ShellCommand
from handaxe.contract.result import ToolResult
from handaxe.tools.shell.bash.bash_data import BashData
from handaxe.tools.shell.bash.output import join_output
from handaxe.tools.shell.bash.timeout import format_duration

MAX_CHARS = 30_000


def format_preview(
    command: ShellCommand, preview: Preview, timeout_s: float, *, next_cwd: str
) -> ToolResult:
    """The changes as diffs, with the command's output."""
    end, output = preview.end, preview.output
    changes = "\n".join([*(_format_diff(diff) for diff in preview.diffs), *preview.others])
    said = join_output(output)
    if output.is_binary:
        said = f"[binary output, {output.total_bytes:,} bytes]"
    is_late = end.how == "time_up"
    tried = f"With exit code {end.exit_code} the command would change:"
    if is_late:
        after = format_duration(timeout_s)
        tried = f"The dry run was stopped after {after}; until then the command would have changed:"
    lines = [
        f"Nothing was changed. {tried}",
        _cut(changes) if changes else "(nothing in the working directories)",
        f"It printed:\n{said}" if said else "",
        *(f"Not compared: {path}" for path in preview.left_out),
        f"[tried in {command.cwd}]",
    ]
    data: BashData = {
        "stdout": said,
        "stderr": "",
        "interrupted": is_late,
        "exitCode": end.exit_code,
        "durationMs": round(end.duration_s * 1000, 1),
        "cwd": command.cwd,
        "nextCwd": next_cwd,
        "totalBytes": output.total_bytes,
        "totalLines": output.total_lines,
        "dryRun": True,
        "changedFiles": [diff.path for diff in preview.diffs],
        "otherChanges": list(preview.others),
        "leftOut": list(preview.left_out),
    }
    if is_late:
        data["timedOutAfterMs"] = round(timeout_s * 1000)
    display: list[Block] = [Text(f"$ {command.command}"), *preview.diffs]
    if preview.others:
        display.append(Items(preview.others))
    return ToolResult("\n".join(filter(None, lines)), data=data, display=tuple(display))


def _format_diff(diff: Diff) -> str:
    rows = [f"{sign} {diff.path}".replace("\n", "\\n") for sign in ("---", "+++")]
    for hunk in diff.hunks:
        old, new = f"{hunk.old_start},{hunk.old_lines}", f"{hunk.new_start},{hunk.new_lines}"
        rows += [f"@@ -{old} +{new} @@", *hunk.lines]
    return "\n".join(rows)


def _cut(text: str) -> str:
    if len(text) <= MAX_CHARS:
        return text
    half = MAX_CHARS // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n\n... [{left_out} characters truncated] ...\n\n{text[-half:]}"
