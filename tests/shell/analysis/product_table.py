"""The product table: commands x rules x modes, with the verdict that the clauses demand.

Every row goes through the semantics of `handaxe explain --jsonl`, in process. The expected verdicts
come from product_model.py and from what the product_*.py modules say about each command.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from functools import cache

import msgspec
from product_model import STRICTNESS, Row

MORE_DENY_RULES = (
    "Bash(rm:*)", "Bash(python3:*)", "Bash(git push:*)", "Bash(echo:*)", "Bash(zz:*)", "Bash(curl:*)", "Bash(sh:*)", "Bash(cat a.txt)", "Bash(* --force)",
    "Edit(a.txt)", "Edit(/src/**)", "Edit(.git/**)", "Edit(//etc/**)", "Read(.env)", "Read(/src/**)", "Read(//etc/**)", "Read(a.txt)", "Read(~/**)", "WebFetch", "Write",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wrong:
    """A row whose verdict the clauses do not accept."""

    row: Row
    verdict: str
    reason: str

    def __str__(self) -> str:
        rules = self.row.rules
        given = [
            f"{kind} {list(texts)}"
            for kind in ("allow", "ask", "deny")
            if (texts := getattr(rules, kind))
        ]
        return (
            f"{self.row.id}\n    clause {self.row.clause}, expected {'|'.join(sorted(self.row.expected))}, got {self.verdict}"
            f"\n    command {self.row.command!r} in {self.row.mode}, {'; '.join(given) or 'no rules'}\n    reason {self.reason!r}"
        )


@cache
def make_rows() -> tuple[Row, ...]:
    """Every row of the table; equal questions are asked once."""
    import product_covering
    import product_denied
    import product_evaluating
    import product_paths
    import product_reading
    import product_writers

    groups = (
        product_evaluating,
        product_writers,
        product_denied,
        product_reading,
        product_covering,
        product_paths,
    )
    rows = {}
    for group in groups:
        for row in group.make_rows():
            asked = (row.command, row.mode, row.rules.allow, row.rules.ask, row.rules.deny)
            before = rows.setdefault(asked, row)
            if not before.expected & row.expected:
                raise AssertionError(f"The model contradicts itself: {before.id} and {row.id}")
    return tuple(rows.values())


def choose_rows(count: int, seed: int) -> list[Row]:
    """Some rows: of every group at least sixty, the rest in proportion."""
    dice = random.Random(seed)
    rows = dice.sample(make_rows(), len(make_rows()))
    seen = Counter()
    first, rest = [], []
    for row in rows:
        seen[row.group] += 1
        (first if seen[row.group] <= 60 else rest).append(row)
    return (first + rest)[:count]


def find_open_rows(rows) -> list[Row]:
    """The rows that no clause decides."""
    return [row for row in rows if row.is_open]


def ask(request: dict) -> dict:
    """The answer line to a request line."""
    from handaxe.app.explain import ExplainRequest, explain_question

    return explain_question(msgspec.convert(request, ExplainRequest), None)


def check_row(row: Row) -> Wrong | None:
    """Compare the verdict on a row with what the model accepts."""
    answer = ask(row.to_request())
    if answer["verdict"] in row.expected:
        return None
    return Wrong(row, answer["verdict"], answer["reason"])


def check_one_more_deny(row: Row, number: int) -> Wrong | None:
    """Adding a deny rule never weakens a verdict."""
    request = row.to_request()
    before = ask(request)["verdict"]
    rule = MORE_DENY_RULES[number % len(MORE_DENY_RULES)]
    request["rules"]["deny"].append(rule)
    after = ask(request)
    if STRICTNESS[after["verdict"]] >= STRICTNESS[before]:
        return None
    return Wrong(
        row, f"{after['verdict']} instead of {before} with the deny rule {rule}", after["reason"]
    )


def count_rows(rows) -> str:
    """How many rows each group and clause has."""
    groups, clauses = Counter(row.group for row in rows), Counter(row.clause for row in rows)
    strict = sum(not row.is_open for row in rows)
    listed = [
        ", ".join(f"{name} {count}" for name, count in counted.most_common())
        for counted in (groups, clauses)
    ]
    return f"{len(rows)} rows, {strict} of them decided by a clause\n  {listed[0]}\n  {listed[1]}"
