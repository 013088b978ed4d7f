import json

import msgspec
import pytest

from handaxe.session.permission_state import (
    MAX_ANSWERS,
    PermissionAnswer,
    PermissionState,
    SourcedRule,
)


def test_leaving_plan_mode_returns_to_the_mode_before():
    state = PermissionState(mode="acceptEdits")
    state.set_mode("plan")
    assert (state.mode, state.mode_before_plan) == ("plan", "acceptEdits")
    state.set_mode("plan")
    assert state.leave_plan() == "acceptEdits"
    assert state.mode_before_plan is None
    assert state.leave_plan() == "acceptEdits"


def test_a_session_that_starts_in_plan_mode_leaves_to_default():
    assert PermissionState(mode="plan").leave_plan() == "default"


def test_rules_keep_their_source_and_grants_come_last():
    deny = SourcedRule("Bash", "deny", "policy")
    allow = SourcedRule("Read", "allow", "flags")
    state = PermissionState(rules=[deny])
    state.grant(["Edit(/src/**)", "Edit(/src/**)"])
    state.add_rules([allow, deny])
    granted = SourcedRule("Edit(/src/**)", "allow", "session")
    assert state.rules == (deny, allow, granted)
    assert state.grants == (granted,)
    assert state.list_rules("policy") == (deny,)


def test_the_rules_of_one_source_are_exchanged_alone():
    old = SourcedRule("A", "deny", "project", file="/p/settings.json", line=3)
    kept = SourcedRule("B", "deny", "user")
    state = PermissionState(rules=[old, kept])
    new = SourcedRule("C", "ask", "project")
    state.replace_rules("project", [new, SourcedRule("D", "allow", "flags")])
    assert state.rules == (kept, new)


def test_rules_and_grants_can_be_taken_back():
    rule = SourcedRule("A", "deny", "flags")
    state = PermissionState(rules=[rule])
    state.grant(["B"])
    state.remove_rules([rule, SourcedRule("B", "allow", "session")])
    assert state.rules == ()


def test_every_change_of_mode_or_rules_shows_in_the_revision():
    state = PermissionState()
    seen = {state.revision}
    state.set_mode("plan")
    seen.add(state.revision)
    state.grant(["A"])
    seen.add(state.revision)
    state.add_rules([SourcedRule("A", "deny")])
    seen.add(state.revision)
    state.record(PermissionAnswer("1", "Bash", accepted=True, by="user"))
    seen.add(state.revision)
    assert len(seen) == 4


def test_answers_are_kept_with_their_call_and_bounded():
    state = PermissionState()
    for n in range(MAX_ANSWERS + 5):
        state.record(PermissionAnswer(str(n), "Write", accepted=n % 2 == 0, by="user"))
    assert len(state.answers) == MAX_ANSWERS
    assert state.answers[-1] == PermissionAnswer(
        str(MAX_ANSWERS + 4), "Write", accepted=True, by="user"
    )


def test_the_state_survives_json():
    state = PermissionState(
        mode="default",
        rules=[SourcedRule("A", "deny", "user", file="f", line=2)],
        never_prompt=True,
    )
    state.set_mode("plan")
    state.grant(["B"])
    state.record(PermissionAnswer("1", "Bash", accepted=False, by="user", reason="no"))
    again = PermissionState.from_json(json.loads(json.dumps(state.to_json())))
    assert again.to_json() == state.to_json()
    assert (again.mode, again.mode_before_plan, again.never_prompt) == ("plan", "default", True)


def test_other_data_is_no_state():
    with pytest.raises(msgspec.ValidationError):
        PermissionState.from_json({"mode": "yolo"})
