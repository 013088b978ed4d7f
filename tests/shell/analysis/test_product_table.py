"""The product table: commands x rules x modes get the verdict that the clauses demand."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest
from product_evaluating import CANARY, FORMS, PAYLOADS, SOURCES, make_evaluating_case
from product_model import Row
from product_proposals import check_offer, make_offers
from product_table import (
    ask,
    check_one_more_deny,
    check_row,
    choose_rows,
    find_open_rows,
    make_rows,
)

SEED = 16
BASH = shutil.which("bash")


def _group_rows() -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in choose_rows(3500, SEED):
        groups.setdefault(row.group, []).append(row)
    return groups


GROUPS = _group_rows()


def _format_wrong(wrong) -> list[str]:
    return [str(one) for one in wrong if one is not None]


@pytest.mark.parametrize("group", GROUPS)
def test_every_row_of_the_product_table_gets_a_verdict_of_its_clause(group):
    assert _format_wrong(check_row(row) for row in GROUPS[group]) == []


def test_another_deny_rule_never_weakens_a_verdict():
    rows = choose_rows(400, SEED + 1)
    assert _format_wrong(check_one_more_deny(row, number) for number, row in enumerate(rows)) == []


def test_no_rule_is_proposed_for_a_program_that_acts_on_its_input():
    forbidden = {}
    for offer in make_offers(feeds=2):
        answer = ask({"tool": "Bash", "input": {"command": offer.command}})
        if rules := check_offer(offer, answer.get("proposals", [])):
            forbidden[offer.command] = rules
    assert forbidden == {}


@pytest.mark.skipif(BASH is None, reason="needs bash")
def test_bash_itself_runs_what_the_evaluating_forms_hold(tmp_path):
    """The model says that bash evaluates these texts; here bash says so too."""
    sources = [*SOURCES]
    idle = []
    for number, form in enumerate(FORMS):
        source = sources[number % len(sources)]
        if not _runs_payload(
            make_evaluating_case(form, source).text, PAYLOADS[form.kind], tmp_path
        ):
            idle.append((source, form.text))
    assert idle == []


def _runs_payload(command: str, payload: str, place) -> bool:
    (place / "a.txt").write_text(payload + "\n")
    subprocess.run(
        [str(BASH), "-c", command],
        cwd=place,
        env={"PATH": os.environ["PATH"], "x": payload},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
        timeout=20,
    )
    canary = place / CANARY
    was_there = canary.exists()
    canary.unlink(missing_ok=True)
    return was_there


def test_the_table_has_thousands_of_rows_and_most_are_decided_by_a_clause():
    rows = make_rows()
    assert len(rows) >= 6000
    assert len(find_open_rows(rows)) * 10 < len(rows)
    assert {f"C{number}" for number in range(2, 27)} - {"C18"} <= {row.clause for row in rows}


def test_at_least_300_benign_commands_hold_a_denied_word():
    benign = {row.command for row in make_rows() if row.group == "harmless word" and row.rules.deny}
    assert len(benign) >= 300
