"""Approve a change by its diff; the callback reads the file through the session itself."""

import asyncio
from pathlib import Path

from handaxe import Allow, Deny, PermissionRequest, Session
from handaxe.content import Diff


async def main() -> None:
    async def on_ask(request: PermissionRequest) -> Allow | Deny:
        before = await session.call("Read", file_path=request.input["file_path"])
        diffs = [block for block in request.preview or () if isinstance(block, Diff)]
        lines = [line for diff in diffs for hunk in diff.hunks for line in hunk.lines]
        print(*lines, sep="\n")
        is_small = len(lines) < 10 and "do not change" not in before.text
        return Allow() if is_small else Deny("Ask the owner of the file.")

    Path("a.txt").write_text("one\n")  # noqa: ASYNC240
    Path("b.txt").write_text("do not change: one\n")  # noqa: ASYNC240
    async with Session(".", on_ask=on_ask) as session:
        for name in ("a.txt", "b.txt"):
            await session.call("Read", file_path=name)
            result = await session.call("Edit", file_path=name, old_string="one", new_string="two")
            print(name, result.code or "changed")


asyncio.run(main())
