"""Crashes with unsynced writes: `scripts/check --long crash_states [OPERATION ...]`.

Records the file-system calls of an operation, makes the states real that a crash may leave, and
works on in each. `--states N` (2,000) per operation, `--seed N`, `--skip N` to go on after so many,
`--plants` to see that planted bugs are found. Prints how many states had which kind of problem.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

import crash_operations
import crash_replay
from crash_replay import Job, Outcome
from planted_bugs import PLANTS

_SHOWN = 5


def _planted() -> list[Job]:
    return [
        Job(operation, states=400, plant=bug)
        for bug in PLANTS
        for operation in (["packs"] if "tree" in bug else ["replace", "create", "patch"])
    ]


def _tell(job: Job, outcome: Outcome) -> bool:
    """Print what came out; whether it is wrong."""
    name = f"{job.operation} with {job.plant}" if job.plant else job.operation
    print(f"{name}: {outcome.states} states of {outcome.steps} steps, problems {outcome.kinds()}")
    for told, problem in [] if job.plant else outcome.problems[:_SHOWN]:
        print(f"    {told}\n        {problem.kind}: {problem.text}")
    sys.stdout.flush()
    return bool(outcome.problems) != bool(job.plant)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/check --long crash_states")
    parser.add_argument("operation", nargs="*", choices=[[], *crash_operations.VERSIONS])
    parser.add_argument("--states", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--plants", action="store_true")
    given = parser.parse_args(arguments)
    if reason := crash_replay.why_not():
        print(f"Nothing can be simulated here: {reason}.")
        return 2
    jobs = [
        Job(operation, given.states, given.seed, skip=given.skip)
        for operation in given.operation or crash_operations.VERSIONS
    ]
    jobs = _planted() if given.plants else jobs
    wrong = [_tell(*pair) for pair in zip(jobs, crash_replay.simulate(jobs), strict=True)]
    return int(any(wrong))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
