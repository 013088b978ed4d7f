"""What exit codes, outputs and JSON answers mean."""

import json
from typing import Any

import msgspec
import pytest

from handaxe.contract.decision import Allow, Ask, Deny
from handaxe.contract.ports.hooks import HookCommandResult, HookResponse
from handaxe.hooks.outcome import NOTHING, Outcome, merge_outcomes
from handaxe.hooks.output import (
    InvalidHookOutput,
    from_command,
    from_json,
    from_reply,
    from_value,
)

pytestmark = pytest.mark.proves("HK-1")


def ended(code=0, stdout: str | dict[str, Any] = "", stderr=""):
    if isinstance(stdout, dict):
        stdout = json.dumps(stdout)
    return HookCommandResult(code, stdout.encode(), stderr.encode())


def permission(word, **more):
    return {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word, **more}
    }


def test_silence_means_nothing():
    assert from_command("PreToolUse", ended()) is NOTHING
    assert from_command("PreToolUse", ended(stdout="just talking")) is NOTHING
    assert from_reply("PreToolUse", HookResponse(204, b"")) is NOTHING


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit", "UserPromptExpansion"])
def test_plain_output_is_context_at_some_events(event):
    assert from_command(event, ended(stdout="today is Monday\n")).messages == ("today is Monday",)


@pytest.mark.parametrize(
    "event", ["PreToolUse", "PostToolUse", "Stop", "UserPromptSubmit", "PreCompact"]
)
def test_exit_code_2_blocks_with_what_stands_on_stderr(event):
    assert from_command(event, ended(2, stderr="not this way\n")).blocked == "not this way"
    assert from_command(event, ended(2)).blocked


@pytest.mark.parametrize(
    "event", ["PermissionRequest", "Notification", "SessionStart", "SessionEnd"]
)
def test_exit_code_2_blocks_nothing_that_cannot_be_blocked(event):
    with pytest.raises(InvalidHookOutput, match="exit code 2"):
        from_command(event, ended(2, stderr="no"))


def test_a_reason_in_json_goes_before_stderr():
    blocked = from_command(
        "PreToolUse", ended(2, permission("deny", permissionDecisionReason="A"), "B")
    )
    assert blocked.blocked == "A"
    assert (
        from_command("PostToolUse", ended(2, {"decision": "block", "reason": "A"}, "B")).blocked
        == "A"
    )
    assert from_command("PreToolUse", ended(2, permission("allow"), "B")).blocked == "B"


def test_broken_json_does_not_weaken_exit_code_2():
    assert from_command("PreToolUse", ended(2, "{broken", "no")).blocked == "no"
    assert from_command("PreToolUse", ended(2, {"continue": "maybe"}, "no")).blocked == "no"


def test_other_exit_codes_are_failures_unless_json_speaks():
    with pytest.raises(InvalidHookOutput, match=r"exit code 1: first line$"):
        from_command("PreToolUse", ended(1, "talk", "first line\nsecond"))
    outcome = from_command(
        "PreToolUse", ended(1, permission("deny", permissionDecisionReason="no"))
    )
    assert outcome.decision == Deny("no", by="hook")
    with pytest.raises(InvalidHookOutput, match="exit code -9"):
        from_command("PostToolUse", ended(-9))


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "{'a': 1}",
        {"continue": "yes"},
        {"decision": "perhaps"},
        {"reason": 3},
        {"hookSpecificOutput": []},
        {"hookSpecificOutput": {"hookEventName": "Stop"}},
        {"hookSpecificOutput": {"permissionDecision": "sure"}},
        {"hookSpecificOutput": {"updatedInput": "x"}},
        {"hookSpecificOutput": {"additionalContext": 3}},
        '{"systemMessage": "\\ud800"',
        "{" * 100_000,
        '{"a":' * 50_000,
    ],
)
def test_json_of_another_shape_is_a_failure(raw):
    with pytest.raises(InvalidHookOutput):
        from_command("PreToolUse", ended(0, raw))


def test_words_that_only_look_like_json_are_words_where_words_are_welcome():
    assert from_command("SessionStart", ended(0, "{not json")).messages == ("{not json",)


def test_a_hook_that_works_on_in_the_background_decides_nothing():
    said = {"async": True, "asyncTimeout": 5000, **permission("deny")}
    assert from_json("PreToolUse", said) is NOTHING


def test_one_that_wakes_the_model_speaks_by_its_exit_code_at_any_event():
    end = HookCommandResult(2, b"said", b"")
    assert from_command("SessionStart", end, rewakes=True).blocked == "said"
    assert (
        from_command("Stop", HookCommandResult(2, b"said", b"why"), rewakes=True).blocked == "why"
    )


@pytest.mark.parametrize(
    ("word", "decision"),
    [("allow", Allow), ("deny", Deny), ("ask", Ask)],
)
def test_words_on_permission(word, decision):
    outcome = from_json("PreToolUse", permission(word, permissionDecisionReason="because"))
    assert outcome.decision == decision("because", by="hook")


def test_a_call_that_is_put_off_is_put_off_whatever_else_the_answer_says():
    said = {"updatedInput": {"x": 1}, "additionalContext": "Hear.", "permissionDecisionReason": "-"}
    assert from_json("PreToolUse", permission("defer", **said)) == Outcome(defers=True)


def test_the_older_words_are_understood():
    assert from_json("PreToolUse", {"decision": "approve", "reason": "r"}).decision == Allow(
        "r", by="hook"
    )
    assert from_json("PreToolUse", {"decision": "block", "reason": "r"}).decision == Deny(
        "r", by="hook"
    )
    both = {"decision": "approve", **permission("deny")}
    assert isinstance(from_json("PreToolUse", both).decision, Deny)


def test_the_rest_of_an_answer_has_its_places():
    raw = {
        "continue": False,
        "stopReason": "enough",
        "suppressOutput": True,
        "systemMessage": "for the person",
        "something": "new",
        **permission(None, updatedInput={"a": 1}, additionalContext="for the model"),
    }
    outcome = from_json("PreToolUse", raw)
    assert outcome == Outcome(
        stop="enough",
        told=("for the person",),
        input={"a": 1},
        messages=("for the model",),
    )


def test_answers_to_a_permission_request():
    def answer(**decision):
        return from_json("PermissionRequest", {"hookSpecificOutput": {"decision": decision}})

    assert answer(behavior="allow", updatedInput={"a": 1}).input == {"a": 1}
    assert answer(behavior="allow").decision == Allow(by="hook")
    refused = answer(behavior="deny", message="no", interrupt=True)
    assert (refused.decision, refused.stop) == (Deny("no", by="hook"), "no")
    mode = {"type": "setMode", "mode": "plan", "destination": "session"}
    (given,) = answer(behavior="allow", updatedPermissions=[mode]).changes
    assert (given.change.type, given.change.mode) == ("setMode", "plan")
    with pytest.raises(InvalidHookOutput):
        answer(behavior="allow", updatedPermissions=[{"type": "addRules"}])
    with pytest.raises(InvalidHookOutput):
        answer(behavior="perhaps")


def test_output_after_a_call_can_be_replaced():
    raw = {"hookSpecificOutput": {"updatedToolOutput": "x", "additionalContext": "y"}}
    outcome = from_json("PostToolUse", raw)
    assert (outcome.output, outcome.messages) == ("x", ("y",))
    assert from_json("PostToolUse", {}).output is msgspec.UNSET


def test_what_only_the_owner_of_an_event_understands_is_kept_for_it():
    raw = {"hookSpecificOutput": {"sessionTitle": "T", "watchPaths": ["/a"]}}
    assert from_json("SessionStart", raw).extra == {"sessionTitle": "T", "watchPaths": ["/a"]}


def test_blocking_counts_only_where_something_can_be_blocked():
    raw = {"decision": "block", "reason": "no"}
    assert from_json("Stop", raw).blocked == "no"
    assert from_json("Notification", raw).blocked is None


def test_a_server_answers_with_success_and_an_object():
    assert (
        from_reply("Stop", HookResponse(200, b'{"decision": "block", "reason": "r"}')).blocked
        == "r"
    )
    for reply in (
        HookResponse(500, b"{}"),
        HookResponse(302, b""),
        HookResponse(200, b"[]"),
        HookResponse(200, b"ok"),
    ):
        with pytest.raises(InvalidHookOutput):
            from_reply("Stop", reply)


def test_a_function_answers_with_nothing_an_outcome_or_a_dict():
    assert from_value("PreToolUse", None) is NOTHING
    assert from_value("PreToolUse", Outcome(blocked="x")).blocked == "x"
    assert isinstance(from_value("PreToolUse", permission("deny")).decision, Deny)
    with pytest.raises(InvalidHookOutput, match="answered with bool"):
        from_value("PreToolUse", True)


def test_merging_keeps_the_strictest_word_and_the_later_input():
    allow, ask, deny = (Outcome(decision=word()) for word in (Allow, Ask, Deny))
    assert merge_outcomes(allow, deny).decision == merge_outcomes(deny, allow).decision == Deny()
    assert merge_outcomes(ask, allow).decision == Ask()
    first, second = (
        Outcome(input={"a": 1}, messages=("1",)),
        Outcome(input={"a": 2}, messages=("2",)),
    )
    assert merge_outcomes(first, second).input == {"a": 2}
    assert merge_outcomes(first, second).messages == ("1", "2")


def test_a_yes_counts_only_for_the_input_that_its_giver_knew():
    allow, change = Outcome(decision=Allow()), Outcome(input={"a": 2})
    assert merge_outcomes(allow, change).decision is None
    assert merge_outcomes(change, allow).decision is None
    both = Outcome(decision=Allow(), input={"a": 2})
    assert merge_outcomes(both, NOTHING).decision == Allow()
    assert merge_outcomes(change, both).decision == Allow()
    assert merge_outcomes(both, Outcome(decision=Deny())).decision == Deny()
