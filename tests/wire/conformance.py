"""The official conformance suite against our server and client: what fails is listed, with a reason.

`python -m tests.wire.conformance` runs it and prints what is not as it should be; the list is
`mcp_conformance.toml` beside this file.
"""

import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from tests.wire.npm import Unavailable, installed, node

LIST = Path(__file__).with_name("mcp_conformance.toml")
REVISIONS = ("2025-11-25", "2026-07-28")
_LINE = re.compile(r"^([✓✗]) ([\w/-]+): \d+ passed, \d+ failed")
_UNSCORED = re.compile(r"^ +[✓✗] ([\w/-]+) \(")


@contextmanager
def server() -> Generator[str]:
    """The server under test; its address."""
    words = [sys.executable, "-m", "tests.wire.everything_server"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
            process.wait(10)


def outcomes(place: Path, revision: str, *words: str) -> dict[str, bool]:
    """Which required scenarios of a revision pass."""
    program = place / "node_modules" / ".bin" / "conformance"
    with tempfile.TemporaryDirectory() as scratch:
        out = subprocess.run(
            [node(place), str(program), *words, "--requirements", revision, "-o", scratch],
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    lines = out.stdout.splitlines()
    unscored = {found[1] for line in lines if (found := _UNSCORED.match(line))}
    scored = {found[2]: found[1] == "✓" for line in lines if (found := _LINE.match(line))}
    assert scored, out.stdout + out.stderr
    return {name: passed for name, passed in scored.items() if name not in unscored}


def surprises(place: Path, address: str) -> list[str]:
    """What the list does not say of the server, or says wrongly."""
    listed = tomllib.loads(LIST.read_text())["server"]
    words = ("server", "--url", address, "--timeout", "10000")
    return [
        line
        for revision in REVISIONS
        for line in _compared(revision, listed[revision], outcomes(place, revision, *words))
    ]


def client_surprises(place: Path, revision: str) -> list[str]:
    """What the list does not say of the client, or says wrongly."""
    reasons = tomllib.loads(LIST.read_text())["client"][revision]
    # The suite starts all clients at once; the lock lets them work one after the other.
    with tempfile.NamedTemporaryFile() as lock:
        client = f"flock {lock.name} {sys.executable} -m tests.wire.everything_client"
        words = ("client", "--command", client, "--timeout", "400000")
        return _compared(revision, reasons, outcomes(place, revision, *words))


def _compared(revision: str, reasons: dict[str, str], passed: dict[str, bool]) -> list[str]:
    """Each scenario whose outcome is another one than the list says."""
    fails = [name for name, ok in passed.items() if not ok and name not in reasons]
    passes = [name for name in reasons if passed.get(name)]
    gone = [name for name in reasons if name not in passed]
    return [
        *(f"{revision} {name} fails" for name in fails),
        *(f"{revision} {name} is listed and passes" for name in passes),
        *(f"{revision} {name} is listed and not there" for name in gone),
    ]


def main() -> int:
    try:
        place = installed()
    except Unavailable as why:
        sys.stderr.write(f"the conformance suite cannot run here: {why}\n")
        return 2
    with server() as address:
        found = surprises(place, address)
    for revision in REVISIONS:
        found += client_surprises(place, revision)
    sys.stdout.writelines(f"{line}\n" for line in found)
    for side, revisions in tomllib.loads(LIST.read_text()).items():
        for revision, reasons in revisions.items():
            sys.stdout.write(f"{side}, {revision}: {len(reasons)} are listed as not offered\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
