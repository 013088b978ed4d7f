"""Many sessions in one process, with the few descriptors that processes have."""

import subprocess
import sys
from pathlib import Path

_MANY = """
import asyncio, resource, sys
from handaxe import Session

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

async def main(root):
    sessions = [Session(root, home=root + "-home", permission_mode="acceptEdits") for _ in range(150)]
    for turn in range(2):
        for number, session in enumerate(sessions):
            name = f"{number}-{turn}.txt"
            for tool, more in ("Write", {"content": name}), ("Read", {}):
                result = await session.call(tool, {"file_path": name, **more})
                assert result.ok and not result.notes, (number, turn, tool, result)
    for number, session in enumerate(sessions):
        undone = await session.undo()
        assert undone.ok and not undone.notes, (number, undone)
        assert len(session.history()) == 3
    for session in sessions:
        await session.close()

asyncio.run(main(sys.argv[1]))
"""


def test_many_sessions_at_work_need_few_descriptors(tmp_path: Path):
    project = tmp_path / "project"
    project.mkdir()
    command = [sys.executable, "-c", _MANY, str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert {path.name for path in project.iterdir()} == {f"{n}-0.txt" for n in range(150)}
