"""Lets the tests of this folder import its players and its rules of pairing."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
