"""What the fault tests need is installed or asked for; nothing is left out silently."""

import shutil
import subprocess
import sys
from pathlib import Path

CHECK = Path(__file__).parents[2] / "scripts" / "check"


def test_the_check_says_how_to_install_what_is_missing(tmp_path: Path):
    for name in ("bash", "dirname", "uname", "id", "env"):
        (tmp_path / name).symlink_to(shutil.which(name) or "")
    said = subprocess.run(
        [CHECK], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert said.returncode == 1
    assert "sudo apt-get install strace chromium gcc libc6-dev" in said.stdout


def test_a_fault_test_that_is_skipped_has_failed(tmp_path: Path):
    faults = Path(__file__).parent
    (tmp_path / "conftest.py").write_text((faults / "conftest.py").read_text())
    (tmp_path / "test_one.py").write_text(
        "import pytest\n@pytest.mark.skipif(True, reason='no tool')\ndef test_it(): pass\n"
    )
    pytest = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null"]
    said = subprocess.run(
        [*pytest, "--rootdir", tmp_path, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.returncode == 1
    assert "no tool" in said.stdout
    assert "apt-get install strace" in said.stdout
