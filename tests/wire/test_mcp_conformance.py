"""The protocol's own programs against our server: the conformance suite, the TypeScript client."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.wire import conformance, npm


@pytest.fixture(scope="module")
def place() -> Path:
    """The directory with the programs; without npm or network there is nothing to run."""
    try:
        return npm.installed()
    except npm.Unavailable as why:
        pytest.skip(str(why))


@pytest.mark.proves("AR-2")
def test_all_required_scenarios_pass_or_are_listed_with_a_reason(place):
    with conformance.server() as address:
        assert conformance.surprises(place, address) == []


@pytest.mark.proves("AR-2")
@pytest.mark.timeout(600)
@pytest.mark.parametrize("revision", conformance.REVISIONS)
def test_our_client_passes_all_required_scenarios_or_they_are_listed(place, revision):
    assert conformance.client_surprises(place, revision) == []


@pytest.mark.proves("AR-2")
def test_the_typescript_client_drives_the_server_on_stdio(place, project):
    (project / "a.py").write_text("x = 1\n")
    script = Path(__file__).with_name("ts_client.mjs")
    out = subprocess.run(
        [npm.node(place), str(script), str(place), sys.executable, str(project)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert out.returncode == 0, out.stderr
    told = json.loads(out.stdout)
    assert {"Read", "Edit", "Grep", "Glob", "Write", "Undo"} <= set(told["tools"])
    assert told["read"] == "     1→x = 1"
    assert told["edited"]
    assert (project / "a.py").read_text() == "x = 2\n"
    assert told["many"] == 100
    assert told["unknown"] == -32602
    assert len(told["asked"]) == 1
    assert told["closed_ms"] < 2000
