"""Places to write in."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Pytest imports test modules without their directory; what they share is found through it.
sys.path.insert(0, str(Path(__file__).parent))

from hostile_places import mounted


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def small_disk(place: Path) -> Iterator[Path]:
    """256 KB and 8 inodes, one of which is the directory itself."""
    disk = place / "small"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=256k,nr_inodes=8", "tmpfs"):
        yield disk


@pytest.fixture
def open_place() -> Iterator[Path]:
    """A directory that other users can reach, unlike pytest's own."""
    made = subprocess.run(
        ["mktemp", "-d", "/tmp/handaxe-test-XXXXXX"], capture_output=True, text=True, check=True
    )
    path = Path(os.path.realpath(made.stdout.strip()))
    path.chmod(0o777)
    yield path
    subprocess.run(["rm", "-rf", str(path)], check=True)
