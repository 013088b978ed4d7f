"""A command tried where somebody mounted a file system below a directory; run by `unshare`."""

# ruff: noqa: T201 (a command of its own speaks to its test)

import asyncio
import json
import subprocess
import sys

from handaxe.contract.faults.shell import CannotPreview
from handaxe.contract.ports.shell import ShellCommand
from handaxe.shell.exec.dry_run import OverlayPreviews


def main(mounted: str, root: str, command: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=True)
    previews = OverlayPreviews(lambda: (root,))
    asked = ShellCommand(call_id="c", command=command, cwd=root)
    try:
        preview = asyncio.run(previews.preview(asked, 20))
    except CannotPreview as fault:
        print(json.dumps({"fault": str(fault)}))
    else:
        changed = [diff.path for diff in preview.diffs]
        print(json.dumps({"said": preview.output.head, "changed": changed}))


main(*sys.argv[1:])
