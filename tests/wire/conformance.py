"""The official conformance suite against our server: what fails must be listed, with a reason.

`python -m tests.wire.conformance` runs it and prints what is not as it should be; the list is
`mcp_conformance.toml` beside this file.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.wire.npm import Unavailable, installed, node

LIST = Path(__file__).with_name("mcp_conformance.toml")
REVISIONS = ("2025-11-25", "2026-07-28")
_LINE = re.compile(r"^([✓✗]) ([\w-]+): (\d+) passed, (\d+) failed$")
_UNSCORED = re.compile(r"^ +[✓✗] ([\w-]+) \(")


@contextmanager
def server() -> Iterator[str]:
    """The server under test; its address."""
    words = [sys.executable, "-m", "tests.wire.everything_server"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(10)


def outcomes(place: Path, address: str, revision: str) -> dict[str, bool]:
    """Which required scenarios of a revision pass."""
    program = place / "node_modules" / ".bin" / "conformance"
    with tempfile.TemporaryDirectory() as scratch:
        out = subprocess.run(
            [
                node(place), str(program), "server", "--url", address,
                "--requirements", revision, "-o", scratch, "--timeout", "10000",
            ],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )  # fmt: skip
    lines = out.stdout.splitlines()
    unscored = {found[1] for line in lines if (found := _UNSCORED.match(line))}
    scored = {found[2]: found[1] == "✓" for line in lines if (found := _LINE.match(line))}
    assert scored, out.stdout + out.stderr
    return {name: passed for name, passed in scored.items() if name not in unscored}


def surprises(place: Path, address: str) -> list[str]:
    """What the list does not say, or says wrongly."""
    listed = tomllib.loads(LIST.read_text())
    found: list[str] = []
    for revision in REVISIONS:
        reasons = listed[revision]
        passed = outcomes(place, address, revision)
        found += [
            f"{revision} {name} fails"
            for name, ok in passed.items()
            if not ok and name not in reasons
        ]
        found += [f"{revision} {name} is listed and passes" for name in reasons if passed.get(name)]
        found += [
            f"{revision} {name} is listed and not there" for name in reasons if name not in passed
        ]
    return found


def main() -> int:
    try:
        place = installed()
    except Unavailable as why:
        sys.stderr.write(f"the conformance suite cannot run here: {why}\n")
        return 2
    with server() as address:
        found = surprises(place, address)
    sys.stdout.writelines(f"{line}\n" for line in found)
    listed = tomllib.loads(LIST.read_text())
    for revision in REVISIONS:
        sys.stdout.write(
            f"{revision}: {len(listed[revision])} scenarios are listed as not offered\n"
        )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
