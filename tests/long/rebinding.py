"""A resolver that changes its answer with every look-up: `scripts/check --long rebinding [TRIES]`.

Every connection has to go to an address that was given to whoever judges. 10,000 tries by default.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.web.test_web_fetch import check_connections

if __name__ == "__main__":
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    asyncio.run(check_connections(tries))
    print(f"{tries:,} connections, none to an address that was not judged")
