"""Sessions, a person, kills, a budget and a wrong clock in any order: nothing is lost."""

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from tests.faults.store_machine import StoreMachine


@pytest.mark.timeout(600)
@pytest.mark.proves("SS-3", "SS-4", "SH-8")
def test_nobody_s_last_write_is_lost_and_every_undo_is_exact_or_says_why():
    run_state_machine_as_test(
        StoreMachine,
        settings=settings(
            max_examples=200,
            stateful_step_count=6,
            derandomize=True,
            database=None,
            # To make failures short takes minutes: the long check does.
            phases=(Phase.generate,),
        ),
    )
