"""The commands in this directory import each other; so do their tests. None is skipped on Linux."""

import sys
from collections.abc import Generator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

HOW = (
    "Nothing here is skipped on Linux. Install strace and a C compiler (scripts/check does it, or "
    "`apt-get install strace gcc libc6-dev`), and let this user trace its own processes "
    "(in a container: `--cap-add SYS_PTRACE`)."
)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    call: pytest.CallInfo[None],
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that was skipped has failed, because what it needs can be had."""
    report = yield
    if report.skipped and sys.platform == "linux" and not hasattr(report, "wasxfail"):
        reason = call.excinfo.value if call.excinfo is not None else "skipped"
        report.outcome, report.longrepr = "failed", f"{reason}. {HOW}"
    return report
