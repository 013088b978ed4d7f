"""Faults in whole commands of the program: `scripts/check --long fault_sweep [COMMAND ...]`.

Every system call that a command makes on files is once killed, failed with EIO and ENOSPC,
interrupted, and (writes) cut short; the next session reads, edits and undoes. `--seed N` decides the order,
`--most N` how many faults are tried, `--skip N` goes on after so many, and `--only
COMMAND:CALL:NTH:HOW` tries one, with * for any part. Prints each problem, and how many of each kind.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import argparse
import fnmatch
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

import crash_replay
import fault_sweep
from swept_commands import COMMANDS

_TELLING = 100


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/check --long fault_sweep")
    parser.add_argument("command", nargs="*", choices=[[], *COMMANDS])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--most", type=int)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--only", default="*")
    given = parser.parse_args(arguments)
    if reason := crash_replay.why_not():
        print(f"Nothing can be injected here: {reason}.")
        return 2
    faults = fault_sweep.faults_of(given.command or list(COMMANDS))
    faults = [fault for fault in faults if fnmatch.fnmatch(str(fault), given.only)]
    random.Random(given.seed).shuffle(faults)
    last = None if given.most is None else given.skip + given.most
    chosen = faults[given.skip : last]
    print(f"{len(chosen)} of {len(faults)} faults, seed {given.seed}", flush=True)
    kinds: Counter[str] = Counter()
    missed = 0
    for number, found in enumerate(fault_sweep.sweep(chosen), 1):
        missed += not found.has_struck
        kinds.update({problem.kind for problem in found.problems})
        for problem in found.problems:
            print(f"{found.fault}\n    {problem.kind}: {problem.text}", flush=True)
        if number % _TELLING == 0:
            print(f"{given.skip + number} tried, {dict(kinds)}", flush=True)
    print(f"{len(chosen)} faults, {missed} missed their call, problems {dict(kinds)}")
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
