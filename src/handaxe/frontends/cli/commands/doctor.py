"""`handaxe doctor`: what works on this machine, and what to do about the rest."""

import argparse
import os
import sys

import msgspec

from handaxe.app.examining import examine
from handaxe.app.findings import Finding
from handaxe.frontends.cli.exits import DONE
from handaxe.frontends.cli.paint import wants_colour
from handaxe.storage.home import data_home
from handaxe.text.visible import visible

_COLOURS = {"ok": "32", "weak": "33", "no": "31"}


def configure(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    """Print the findings."""
    found = examine(os.path.realpath("."), data_home())
    if arguments.json:
        by_key = {finding.key: _facts(finding) for finding in found}
        sys.stdout.write(msgspec.json.encode(by_key).decode() + "\n")
        return DONE
    is_coloured = wants_colour(sys.stdout)
    width = max(len(finding.key) for finding in found)
    group = ""
    for finding in found:
        if group and finding.key.partition(".")[0] != group and _is_first_of_many(finding, found):
            print()
        group = finding.key.partition(".")[0]
        mark = f"{finding.standing:4}"
        if is_coloured:
            mark = f"\033[{_COLOURS[finding.standing]}m{mark}\033[0m"
        print(f"{mark}  {finding.key:{width}}  {visible(finding.value)}")
        if finding.advice:
            print(f"      {'':{width}}  {visible(finding.advice)}")
    return DONE


def _is_first_of_many(finding: Finding, found: list[Finding]) -> bool:
    group = finding.key.partition(".")[0] + "."
    return sum(other.key.startswith(group) for other in found) > 1


def _facts(finding: Finding) -> dict[str, str]:
    facts = msgspec.structs.asdict(finding)
    return {name: value for name, value in facts.items() if name != "key"}
