"""What a verdict on a command costs, analysis included: `uv run python bench/decide.py`.

Limits: 0.7 ms in the median over everyday commands, 50 ms for any text of 4 KB. Processor time, so
that other work on the machine does not count.
"""

import random
import sys
import time
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests/shell/analysis"
sys.path.insert(0, str(TESTS))

from reference import decision  # noqa: E402

from handaxe.shell.analysis import analyze  # noqa: E402
from handaxe.shell.analysis.parser.parse import parse  # noqa: E402

SIGNS = "abc ls;|&()<>$`'\"\\{}[]*?#!=~\n\t"
LARGE = (
    "echo " + "a " * 2000,
    "ls; " * 1000,
    "python3 -c '" + "rm x; " * 600 + "'",
    "cat <<EOF\n" + "rm $x\n" * 500 + "EOF",
    "for i in " + "a " * 1000 + "; do cp $i b; done",
    "bash -c '" + "ls && " * 600 + "ls'",
    "find . " + "-o -name x " * 300,
    "timeout 5 " * 400 + "rm x",
    "git log " + "--grep=rm " * 400,
    "zz " + "'rm x' " * 500,
)


def measure(command: str, **rules) -> float:
    """Milliseconds of processor time for a verdict with nothing cached."""
    analyze.cache_clear()
    parse.cache_clear()
    start = time.process_time()
    decision(command, **rules)
    return (time.process_time() - start) * 1e3


def main() -> None:
    lines = [
        line
        for name in ("ordinary.txt", "everyday.txt")
        for line in (TESTS / name).read_text("utf-8").splitlines()
        if line and not line.startswith("# ")
    ]
    rules = {"allow": ["Bash(npm test:*)"], "deny": ["Bash(rm:*)", "Bash(curl:*)"]}
    measure("ls; (cd a && echo $((1 + 1)))", **rules)
    times = sorted(measure(line, **rules) for line in lines)
    median, worst = times[len(times) // 2], times[-1]
    print(
        f"{len(lines)} everyday commands: median {median:.2f} ms (limit 0.7), worst {worst:.1f} ms"
    )
    chooser = random.Random(1)
    noise = ["".join(chooser.choice(SIGNS) for _ in range(4096)) for _ in range(40)]
    print(
        f"40 texts of 4 KB noise: worst {max(measure(t, **rules) for t in noise):.1f} ms (limit 50)"
    )
    for text in LARGE:
        print(f"{measure(text[:4096], **rules):6.1f} ms  {text[:50]!r}")


if __name__ == "__main__":
    main()
