"""Lets the tests of this folder import its probes."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
