"""The URL cases of the web platform tests: `scripts/check --long url_cases PATH`.

PATH is `url/resources/urltestdata.json` of that suite. For every case the host that rules are
compared with has to be the host that the request names, or the address is refused.
"""

# ruff: noqa: T201 (a command of its own speaks to the terminal)

import json
import sys
from pathlib import Path
from urllib.parse import urlsplit

from handaxe.contract.faults.web import BadAddress
from handaxe.net.pinned_http import make_request
from handaxe.web.address import parse_address


def find_disagreement(case: dict) -> str | None:
    """What is wrong about a case; None if nothing is."""
    base = case.get("base")
    try:
        found = parse_address(case["input"], None if base in (None, "about:blank") else base)
    except BadAddress:
        return None
    if case.get("failure"):
        return f"accepted as {found.url}"
    expected = case["hostname"].removesuffix(".")
    if found.host != expected:
        return f"host {found.host}, not {expected}"
    request = make_request(found, "127.0.0.1", method="GET", headers={}, body=b"", timeout_s=1)
    sent = request.headers["host"]
    named = urlsplit(f"//{sent}")
    if (
        sent not in {expected, f"{expected}:{found.port}"}
        or (named.port or found.port) != found.port
    ):
        return f"the request names {sent}, not {expected}"
    if request.url.host != "127.0.0.1" or request.url.raw_path.decode() != found.target:
        return f"the request goes to {request.url}"
    return None


def main(path: str) -> int:
    cases = [case for case in json.loads(Path(path).read_text()) if isinstance(case, dict)]
    wrong = 0
    for case in cases:
        problem = find_disagreement(case)
        if problem is not None:
            wrong += 1
            print(f"{case['input']!r} with base {case.get('base')!r}: {problem}")
    print(f"{len(cases)} cases, {wrong} disagreements")
    return min(wrong, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
