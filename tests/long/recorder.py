"""The recorder fuzz of tests/shell/analysis: `scripts/check --long recorder --commands 50000`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from recorder_fuzz import main

if __name__ == "__main__":
    sys.exit(main())
