"""A session short of everything: `scripts/check --long rough [runs of each kind] [seed]`.

Few files, few processes, little memory, single failed allocations, a clock that jumps, and a
process that is stopped again and again; after each run the next session sets to work.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

import rough_session
from test_rough_conditions import DAY_S, compile_clock

Kind = Callable[[random.Random, Path, Path], dict[str, Any]]


def _few_files(chance: random.Random, project: Path, home: Path) -> dict[str, Any]:
    return rough_session.answers(
        rough_session.start(project, home, f"files={chance.randrange(8, 80)}")
    )


def _few_processes(chance: random.Random, project: Path, home: Path) -> dict[str, Any]:
    before = rough_session.without_processes(chance.randrange(12))
    return rough_session.answers(rough_session.start(project, home, before=before))


def _little_memory(chance: random.Random, project: Path, home: Path) -> dict[str, Any]:
    strain = f"memory={chance.randrange(0, 40_000_000)}"
    return rough_session.answers(rough_session.start(project, home, strain))


def _failed_allocation(chance: random.Random, project: Path, home: Path) -> dict[str, Any]:
    strain = f"allocation={chance.randrange(1, 400_000)}"
    return rough_session.answers(rough_session.start(project, home, strain))


def _stopped(chance: random.Random, project: Path, home: Path) -> dict[str, Any]:
    process = rough_session.start(project, home)
    while process.poll() is None:
        for order in (signal.SIGSTOP, signal.SIGCONT):
            process.send_signal(order)
            time.sleep(chance.random() * 0.02)
    return rough_session.answers(process)


def _clock(library: Path) -> Kind:
    def run(chance: random.Random, project: Path, home: Path) -> dict[str, Any]:
        variables = {
            "LD_PRELOAD": str(library),
            "CLOCK_OFFSET_S": str(chance.randrange(-30 * 365, 30 * 365) * DAY_S),
            "CLOCK_FLIP_S": str(chance.choice([0, 3_600, 400 * DAY_S])),
        }
        return rough_session.answers(rough_session.start(project, home, variables=variables))

    return run


def main(runs: int = 100, seed: int = 1) -> None:
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as place:
        kinds: dict[str, Kind] = {
            "few files": _few_files,
            "few processes": _few_processes,
            "little memory": _little_memory,
            "failed allocation": _failed_allocation,
            "stopped": _stopped,
            "clock": _clock(compile_clock(Path(place))),
        }
        for name, kind in kinds.items():
            ended: Counter[str] = Counter()
            for number in range(runs):
                with rough_session.prepared() as (project, home):
                    outcome = kind(chance, project, home)
                    ended["whole" if outcome["status"] == 0 else "ended early"] += 1
                    wrong = rough_session.problems_after(project, home)
                    assert not wrong, (name, number, seed, wrong, outcome)
            print(f"{name}: {runs} runs, {dict(ended)}", flush=True)
    print("0 wrong")


if __name__ == "__main__":
    try:
        main(*map(int, sys.argv[1:]))
    except subprocess.TimeoutExpired as hung:
        sys.exit(f"a session hung: {hung}")
