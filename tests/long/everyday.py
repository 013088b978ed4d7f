"""Measures how many everyday commands of public documentation pass without a question.

`scripts/check --long everyday PATH [--asked]`, or the path in EVERYDAY_SOURCES: a directory with
one folder for each source that tests/shell/analysis/everyday_sources.py names. The marks are in
tests/shell/analysis/everyday_public.txt.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from everyday_sources import TLDR, draw
from reference import decision

SHELL_TESTS = Path(__file__).parents[1] / "shell" / "analysis"
MUST_ASK = frozenset({"write", "run", "network", "outside", "environment", "lists", "dynamic"})
"""Marks of what nobody may run without a question; the others change nothing either way."""
SHARE = 0.98
AT_LEAST = 500


def read_marks() -> dict[str, str]:
    """The mark of each digest."""
    lines = (SHELL_TESTS / "everyday_public.txt").read_text("utf-8").splitlines()
    fields = [line.split(" ", 2) for line in lines if line and not line.startswith("#")]
    return {digest: mark for digest, mark, _ in fields}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", nargs="?", default=os.environ.get("EVERYDAY_SOURCES"))
    parser.add_argument("--asked", action="store_true", help="show each command that asks")
    options = parser.parse_args()
    if not options.sources or not Path(options.sources, TLDR).is_dir():
        _say("Name a directory with copies of the sources, or set EVERYDAY_SOURCES to it.")
        return 2
    marks, counts, wrong, asked = read_marks(), Counter(), [], []
    for drawn in draw(Path(options.sources)):
        mark = marks.get(drawn.digest, "unmarked")
        judged = decision(drawn.command)
        counts[f"{mark}: {judged.verdict}"] += 1
        if mark in MUST_ASK and judged.verdict == "allow":
            wrong.append(f"allowed, but marked {mark}: {drawn.command}")
        if mark == "look" and judged.verdict != "allow":
            asked.append(f"{judged.reason}: {drawn.command}")
    for line in (*wrong, *(sorted(asked) if options.asked else ())):
        _say(line)
    for name, number in sorted(counts.items()):
        _say(f"{number:6} {name}")
    looking = counts["look: allow"] + len(asked)
    share = counts["look: allow"] / max(looking, 1)
    _say(f"{share:.1%} of {looking} pass, {len(wrong)} wrong")
    return 1 if wrong or share < SHARE or looking < AT_LEAST else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")


if __name__ == "__main__":
    sys.exit(main())
