"""What is outside the working directories is not looked at before somebody may: by the system calls."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import tracing

REASON = tracing.why_not()
READS_LINK = re.compile(r"readlink\(|<\.\.\. readlink resumed>")

CALLS = [
    ("Read", {}),
    ("Write", {"content": "changed"}),
    ("Edit", {"old_string": "secret", "new_string": "changed"}),
    ("Edit", {"old_string": "", "new_string": "changed"}),
    ("MultiEdit", {"edits": [{"old_string": "secret", "new_string": "changed"}]}),
]


@pytest.mark.skipif(REASON is not None, reason=REASON or "")
def test_what_a_link_leads_to_outside_is_not_even_looked_at_before_a_yes(tmp_path: Path):
    project, outside = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    outside.mkdir()
    (outside / "secret.txt").write_text("secret\n")
    (project / "directory").symlink_to(outside)
    (project / "file").symlink_to(outside / "secret.txt")
    (project / "dangling").symlink_to(outside / "missing.txt")
    names = ["directory", "directory/secret.txt", "directory/missing.txt", "file", "dangling"]
    lines = [
        json.dumps({"tool": tool, "input": {"file_path": name, **rest}})
        for name in names
        for tool, rest in CALLS
    ]
    trace = tmp_path / "trace.txt"
    strace = ["strace", "-f", "-qq", "-s", "400", "-e", "trace=%file", "-o", str(trace)]
    done = subprocess.run(
        [*strace, sys.executable, "-m", "handaxe", "run", "--root", str(project)],
        input="\n".join(lines).encode(),
        capture_output=True,
        check=False,
        env={**os.environ, "HANDAXE_HOME": str(tmp_path / "data"), "HOME": str(tmp_path / "home")},
    )
    codes = [json.loads(line)["code"] for line in done.stdout.splitlines()]
    assert codes == ["permission.asked"] * len(lines)
    looked = [
        line
        for line in trace.read_text(errors="replace").splitlines()
        if ("/elsewhere" in line or "/directory/" in line) and not READS_LINK.search(line)
    ]
    assert looked == []
