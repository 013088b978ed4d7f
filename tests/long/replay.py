"""Strict replay, many times: `scripts/check --long replay [runs] [seed]`.

Records 20 turns with agents of different speed, and plays them again in other projects at another
pace; every replay has to give the recorded conversation. A new recording is made every 20 runs.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import os
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.agent.subagents.improviser import record_work, replay_work

RUNS_EACH = 20


async def main(runs: int, seed: int) -> int:
    wrong = 0
    for batch in range(0, runs, RUNS_EACH):
        with tempfile.TemporaryDirectory() as made:
            place = Path(made)
            os.environ["HANDAXE_HOME"] = os.environ["HANDAXE_CONFIG_HOME"] = str(place / "home")
            file, talk = await record_work(place, seed + batch)
            for run in range(min(RUNS_EACH, runs - batch)):
                played = await replay_work(file, place, run)
                if played != talk:
                    wrong += 1
                    print(f"recording {seed + batch}, run {run}: {played[:2]}")
        print(f"{min(batch + RUNS_EACH, runs)} replays, {wrong} differ", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    given = [int(word) for word in sys.argv[1:]]
    sys.exit(asyncio.run(main(*(given + [100, 1][len(given) :]))))
