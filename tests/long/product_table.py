"""All rows of the product table: `scripts/check --long product_table [--failures FILE] [--open]`."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "shell" / "analysis"))

from product_proposals import check_offer, make_offers
from product_table import (
    ask,
    check_one_more_deny,
    check_row,
    count_rows,
    find_open_rows,
    make_rows,
)


def main() -> int:
    """Check every row, one more deny rule for each, and the proposals."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--group", action="append", help="only rows of this group; may be repeated")
    parser.add_argument("--failures", type=Path, help="write every wrong row to this file")
    parser.add_argument("--open", action="store_true", help="list what the clauses leave open")
    arguments = parser.parse_args()
    rows = [row for row in make_rows() if not arguments.group or row.group in arguments.group]
    say(count_rows(rows))
    if arguments.open:
        list_open(rows)
    wrong = [found for row in rows if (found := check_row(row))]
    weaker = [
        found
        for number, row in enumerate(rows)
        if row.group != "limits" and (found := check_one_more_deny(row, number))
    ]
    proposed = find_forbidden_proposals()
    for title, found in (("wrong", wrong), ("weaker with one more deny rule", weaker)):
        say(f"{len(found)} rows are {title}")
        counted = Counter(
            (one.row.group, one.row.clause, "|".join(sorted(one.row.expected)), one.verdict[:20])
            for one in found
        )
        for (group, clause, expected, verdict), count in counted.most_common():
            say(f"  {count:5} {group} ({clause}): expected {expected}, got {verdict}")
    say(f"{len(proposed)} commands propose a rule that C27 forbids")
    if arguments.failures:
        arguments.failures.write_text(describe(rows, wrong, weaker, proposed), "utf-8")
    return 1 if wrong or weaker or proposed else 0


def find_forbidden_proposals() -> dict[str, list[str]]:
    """The commands for which a forbidden rule is proposed."""
    found = {}
    for offer in make_offers():
        answer = ask({"tool": "Bash", "input": {"command": offer.command}})
        if rules := check_offer(offer, answer.get("proposals", [])):
            found[offer.command] = rules
    return found


def list_open(rows) -> None:
    """What the clauses leave open, with the verdict of today."""
    seen: dict[tuple, Counter] = {}
    for row in find_open_rows(rows):
        place = (row.group, row.clause, row.command, row.note)
        seen.setdefault(place, Counter())[ask(row.to_request())["verdict"]] += 1
    for (group, clause, command, note), verdicts in seen.items():
        say(f"  open {group} ({clause}) {command!r}: {dict(verdicts)} {note}")


def describe(rows, wrong, weaker, proposed) -> str:
    """Every wrong row, the wrong allows first, rows of one command together."""
    together: dict[tuple, list] = {}
    for one in wrong:
        together.setdefault((one.row.group, one.row.command, one.verdict), []).append(one)
    lines = [count_rows(rows), f"{len(wrong)} wrong rows over {len(together)} commands", ""]
    for (_, _, _), found in sorted(
        together.items(), key=lambda item: (item[0][2] != "allow", item[0])
    ):
        lines.append(str(found[0])[:1500])
        if len(found) > 1:
            also = "; ".join(f"{one.row.rules.name}/{one.row.mode}" for one in found[1:])
            lines.append(f"    also {also}")
    lines += ["", f"{len(weaker)} rows weaker with one more deny rule", *map(str, weaker)]
    lines += ["", f"{len(proposed)} commands propose a rule that C27 forbids"]
    lines += [f"{command!r}: {rules}" for command, rules in proposed.items()]
    return "\n".join(lines) + "\n"


def say(text: str) -> None:
    """Print at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
