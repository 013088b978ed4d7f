"""Every option of every program table, run for real: `scripts/check --long programs`.

Installs the programs that the package registry has, as far as it may, and skips the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from program_runs import PACKAGES, all_runs, run_all, say


def install() -> None:
    """Install what is missing, where that is allowed and possible."""
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        say("Programs can be installed only by root with apt-get; using those that are here.")
        return
    for package in PACKAGES:
        known = subprocess.run(["dpkg", "-s", package], capture_output=True, check=False)
        if known.returncode != 0:
            command = ["apt-get", "-qq", "install", "-y", "--no-install-recommends", package]
            done = subprocess.run(command, capture_output=True, check=False)
            say(f"{package}: {'installed' if done.returncode == 0 else 'not available'}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-install", action="store_true")
    parser.add_argument("--programs", default="", help="only these, separated by commas")
    parser.add_argument("--part", default="1/1", help="such as 1/2: the first half of the commands")
    parser.add_argument("--path", default="", help="more directories of programs, as in PATH")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--report", default="", help="file for a JSON report")
    options = parser.parse_args()
    if not options.no_install:
        install()
    runs = all_runs(options.seed)
    wanted = set(options.programs.split(",")) - {""}
    if wanted:
        runs = [run for run in runs if run.program in wanted or run.words[0] in wanted]
    part, parts = (int(number) for number in options.part.split("/"))
    runs = runs[part - 1 :: parts]
    use_strace = shutil.which("strace") is not None
    with tempfile.TemporaryDirectory(prefix="handaxe-programs-") as place:
        report = run_all(Path(place), runs, use_strace=use_strace, extra=options.path, verbose=True)
    for program, option in report.never_accepted:
        say(f"NOT RUN {program} {option}")
    say(f"NOT INSTALLED {' '.join(sorted(report.missing))}")
    programs = len({run.program for run in runs})
    say(f"{programs} programs, {len(report.seen)} options, {dict(report.counts)}")
    say(f"{len(report.wrong)} wrong, {len(report.never_accepted)} options were never accepted")
    if options.report:
        found = {"wrong": report.wrong, "never": report.never_accepted,
                 "missing": sorted(report.missing), "counts": report.counts}  # fmt: skip
        Path(options.report).write_text(json.dumps(found, indent=1))
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
