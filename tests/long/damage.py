"""Bad bytes in our own records: `scripts/check --long damage [positions in all] [seed]`.

Log, journal, pack, manifest and pin each get their share of the positions (5,000 in all).
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "faults"))

import damaged_bytes


def main(positions: int = 5_000, seed: int = 1) -> None:
    each = -(-positions // len(damaged_bytes.KINDS))
    for kind, seen in damaged_bytes.run(each, seed):
        print(f"{kind}: {each:,} positions, {dict(seen)}", flush=True)
    print("0 wrong")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
