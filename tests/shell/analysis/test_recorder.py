"""What runs in real bash is what the verdict said could run."""

from __future__ import annotations

import shutil

import pytest
from recorder_fuzz import BASH, fuzz, fuzz_rules

needs_tools = pytest.mark.skipif(
    shutil.which("cc") is None or shutil.which(BASH) is None, reason="needs bash and a C compiler"
)


@needs_tools
def test_allowed_commands_run_only_what_was_allowed_and_change_nothing():
    counts, broken = fuzz(2000, seed=5)
    assert broken == []
    assert counts["plain allow"] > 150
    assert counts["denying allow"] > 400


@needs_tools
def test_content_rules_run_only_their_programs_and_spare_protected_files():
    counts, broken = fuzz_rules(200, seed=3)
    assert broken == []
    assert counts["rule echo"] + counts["rule printf"] + counts["rule cp"] > 20
