"""How long a verdict on a bash command takes: ordinary commands, and four kilobytes of the worst.

Run: `uv run python bench/shell_decide.py`. Prints numbers, never pass or fail.
"""
# pyright: basic

from __future__ import annotations

import sys
import time
from pathlib import Path

TESTS = Path(__file__).parent.parent / "tests" / "shell" / "analysis"
sys.path.insert(0, str(TESTS))

from reference import decision  # noqa: E402

RULES = {
    "allow": ["Bash(npm test:*)", "Bash(make *)", *[f"Bash(tool{n}:*)" for n in range(30)]],
    "deny": ["Bash(rm:*)", "Bash(git push *)", *[f"Bash(bad{n} x*y:*)" for n in range(30)]],
    "ask": ["Bash(curl *)"],
}
WORST = {
    "many parts": "ls;" * 1300,
    "pipeline": "ls|" * 1300 + "ls",
    "deep parentheses": "( " * 2000,
    "deep substitutions": "$(" * 2000,
    "backticks": "`" * 4000,
    "braces": "echo " + "{" * 1000 + "a,b" + "}" * 1000,
    "brackets": "ls " + "[" * 4000,
    "nested loops": "for i in {1..9}; do " * 3 + "ls $i; " + "done; " * 3,
    "wrappers": "timeout 5 " * 400 + "ls",
    "eval": "eval " * 800 + "ls",
    "operands": "ls " + "a " * 2000,
    "here-documents": "cat " + "<<E " * 400 + "\n" + "x\n" * 300 + "E\n" * 400,
    "inner shell": "bash -c '" + "ls; " * 1000 + "'",
    "tests": "[ -f a ] && " * 340 + "ls",
}


def measure(command: str, rounds: int, **rules) -> float:
    """The median processor time of one decision in milliseconds."""
    times: list[float] = []
    for _ in range(rounds):
        start = time.process_time()
        decision(command, **rules)
        times.append((time.process_time() - start) * 1e3)
    return sorted(times)[rounds // 2]


def main() -> None:
    start = time.perf_counter()
    decision("ls | wc -l")
    print(f"first decision {(time.perf_counter() - start) * 1e3:.1f} ms (loads tables and grammar)")
    commands = [line for line in (TESTS / "ordinary.txt").read_text("utf-8").splitlines() if line]
    for title, rules in (("no rules", {}), ("63 rules", RULES)):
        times = sorted(measure(command, 3, **rules) for command in commands)
        middle, high = times[len(times) // 2], times[int(len(times) * 0.99)]
        print(
            f"ordinary, {title}: median {middle:.3f} ms, p99 {high:.3f} ms, max {times[-1]:.3f} ms"
        )
    for title, command in WORST.items():
        print(f"4 KB {title}: {measure(command[:4096], 3, **RULES):.1f} ms")


if __name__ == "__main__":
    main()
