"""The state machine of the store, many times: `scripts/check --long state_machine [runs] [seed]`.

Prints one line per thousand runs and stops at the first failure, with the steps that lead to it.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from typing import cast

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis.stateful import run_state_machine_as_test
from tests.faults.store_machine import StoreMachine

STEPS = 25
CHUNK = 1000


def main(runs: int, seed: int) -> None:
    """Run it in chunks, each with a seed of its own."""
    with tempfile.TemporaryDirectory() as home:
        for name in ("HANDAXE_HOME", "HANDAXE_CONFIG_HOME", "CLAUDE_CONFIG_DIR"):
            os.environ[name] = f"{home}/{name.lower()}"
        for begun in range(0, runs, CHUNK):
            run_chunk(min(CHUNK, runs - begun), seed + begun)
            print(
                f"{min(begun + CHUNK, runs):7,} runs of up to {STEPS} steps, 0 failures", flush=True
            )


def run_chunk(runs: int, seed: int) -> None:
    """Raises what the first failing run raises, after it was made as short as can be."""
    StoreMachine.most_kills = STEPS
    hypothesis.seed(seed)(StoreMachine)
    settings = hypothesis.settings(
        max_examples=runs,
        stateful_step_count=STEPS,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=cast("list[HealthCheck]", list(HealthCheck)),
    )
    run_state_machine_as_test(StoreMachine, settings=settings)


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(*(numbers + [10_000, 0][len(numbers) :]))
