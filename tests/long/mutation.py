"""Texts put at every token boundary of every ordinary command: `scripts/check --long mutation`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from test_mutation import EVALUATED, EVERY, INSERTS, OPENERS, find_allowed


def main() -> int:
    """Print every mutant that is allowed; 1 if there is one."""
    inserts = [*INSERTS, *EVALUATED, *OPENERS]
    allowed = [mutant for insert in inserts for mutant in find_allowed(EVERY, insert)]
    sys.stdout.writelines(f"{mutant!r}\n" for mutant in allowed)
    sys.stdout.write(f"{len(EVERY)} commands, {len(inserts)} texts, {len(allowed)} allowed\n")
    return 1 if allowed else 0


if __name__ == "__main__":
    sys.exit(main())
