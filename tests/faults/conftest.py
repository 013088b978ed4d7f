"""The commands in this directory import each other; so do their tests."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
