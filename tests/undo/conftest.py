"""A project with one of everything a file system can hold."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def tree(project: Path) -> Path:
    (project / "a.txt").write_text("one\n")
    os.link(project / "a.txt", project / "twin")
    (project / "deep/er").mkdir(parents=True)
    (project / "deep/x.txt").write_text("x\n")
    (project / "deep/er/y.txt").write_text("y\n" * 1000)
    (project / "empty").mkdir()
    (project / "link").symlink_to("a.txt")
    (project / "dangling").symlink_to("nowhere")
    (project / "big.bin").write_bytes(os.urandom(200_000))
    (project / "sparse").write_bytes(b"")
    (project / ".hidden").write_text("hidden\n")
    (project / "line\nbreak").write_text("odd\n")
    Path(os.fsdecode(os.fsencode(project) + b"/caf\xe9")).write_text("latin\n")
    os.mkfifo(project / "pipe")
    (project / "deep/x.txt").chmod(0o640)
    return project
