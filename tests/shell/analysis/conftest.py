"""Makes the reference beside these tests importable."""
# pyright: basic

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
