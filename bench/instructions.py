"""Counts instructions instead of seconds: `uv run python bench/instructions.py [CASE ...]`.

Needs valgrind. callgrind counts what the main process executes, so other work on the machine hardly
matters. A call is the difference between a short and a long run of the same session, divided by the
calls between them; a start is a whole process. Three runs show the noise.

`--record FILE` keeps the counts, `--against FILE` compares with kept ones: it prints the ratio of
every case and the functions that are called more often than before. `--source DIR` measures
another checkout.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from instructions_cases import CALLS, STARTS, prepare

CASES = Path(__file__).with_name("instructions_cases.py")
SHORT, LONG = 5, 105
RUNS = 3
LIMIT = 1.05
SHOWN = 12
_COLLECTED = re.compile(r"Collected : (\d+)")


def count(source: Path, case: str, calls: int) -> int:
    """The instructions of one process that makes so many calls."""
    done = _run(
        source, ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"], case, calls
    )
    found = _COLLECTED.search(done.stderr)
    if found is None:
        raise SystemExit(f"callgrind counted nothing for {case}:\n{done.stderr[-2000:]}")
    return int(found[1])


def count_functions(source: Path, case: str) -> dict[str, float]:
    """How often each function of handaxe runs in one call."""
    done = _run(source, [], case, LONG - SHORT, profile=True)
    return json.loads(done.stdout.splitlines()[-1])


def _run(
    source: Path, prefix: list[str], case: str, calls: int, *, profile: bool = False
) -> "subprocess.CompletedProcess[str]":
    with tempfile.TemporaryDirectory(prefix="handaxe-instructions-") as made:
        root = Path(made, "project")
        prepare(root)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": made,
            "HANDAXE_HOME": f"{made}/data",
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(source / "src"),
        }
        words, said = STARTS.get(case, ([], ""))
        words = ["-m", "handaxe", *words] if words else [str(CASES), case, str(calls)]
        done = subprocess.run(
            [*prefix, sys.executable, *words, *(["--profile"] if profile else [])],
            env=environment,
            cwd=root,
            input=said,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise SystemExit(f"{case} failed:\n{done.stderr[-3000:]}")
    return done


def measure(source: Path, case: str) -> dict[str, object]:
    """The least of some runs, and how far they lie apart."""
    if case in STARTS:
        counts = [count(source, case, 1) for _ in range(RUNS)]
        functions: dict[str, float] = {}
    else:
        counts = [
            (count(source, case, LONG) - count(source, case, SHORT)) // (LONG - SHORT)
            for _ in range(RUNS)
        ]
        functions = count_functions(source, case)
    # Threads that wait for each other only ever add to the least.
    least = min(counts)
    return {
        "instructions": least,
        "noise": (max(counts) - least) / least,
        "functions": functions,
    }


def _show_grown(case: str, now: dict[str, float], before: dict[str, float]) -> None:
    grown = {name: n - before.get(name, 0) for name, n in now.items()}
    for name, more in sorted(grown.items(), key=lambda item: -item[1])[:SHOWN]:
        if more > 0:
            print(
                f"    {case}: {name} runs {now[name]:g} times a call, before {now[name] - more:g}"
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("case", nargs="*", help=f"some of: {', '.join((*CALLS, *STARTS))}")
    parser.add_argument("--record", type=Path)
    parser.add_argument("--against", type=Path)
    parser.add_argument("--source", type=Path, default=Path(__file__).parents[1])
    given = parser.parse_args()
    kept = json.loads(given.against.read_text()) if given.against else {}
    found: dict[str, dict[str, object]] = {}
    is_worse = False
    for case in given.case or (*CALLS, *STARTS):
        found[case] = now = measure(given.source, case)
        line = (
            f"{case:12} {now['instructions'] / 1e6:9.3f} M instructions, noise {now['noise']:.1%}"
        )
        if case in kept:
            ratio = now["instructions"] / kept[case]["instructions"]
            is_worse |= ratio > LIMIT
            line += f", {ratio:.3f}x of before"
        print(line, flush=True)
        if case in kept and ratio > 1:
            _show_grown(case, now["functions"], kept[case]["functions"])
        if given.record:
            given.record.write_text(json.dumps(found, indent=1) + "\n")
    return int(is_worse)


if __name__ == "__main__":
    sys.exit(main())
