"""What people are told of the hooks they set up: failures, and waits."""

from handaxe.agent.run_hooks import FailedHooks, SlowHooks, describe_hook_failure
from handaxe.contract.events import HookOutcome, HookRan


def ran(ms=5.0, event="PreToolUse", hook="lint", outcome: HookOutcome = "silent", **more):
    return HookRan(event=event, hook=hook, outcome=outcome, duration_ms=ms, **more)


def test_a_slow_hook_is_told_once():
    slow = SlowHooks()
    assert slow.heard(ran(20)) is None
    told = slow.heard(ran(2400))
    assert told is not None
    assert "PreToolUse hook 'lint' took 2.4 s" in told
    assert slow.heard(ran(2500)) is None
    assert slow.heard(ran(2500, event="PostToolUse")) is not None
    assert slow.heard(ran(2500, hook="other")) is not None


def test_many_short_waits_are_a_long_one():
    slow = SlowHooks()
    told = [slow.heard(ran(400)) for _ in range(40)]
    (sentence,) = [one for one in told if one is not None]
    assert told.index(sentence) == 24
    assert "10.0 s in 25 runs" in sentence


def test_nobody_waits_for_what_runs_in_the_background_or_was_asked_for():
    slow = SlowHooks()
    assert slow.heard(ran(9000, in_background=True)) is None
    assert slow.heard(ran(90_000, event="Setup")) is None


def test_a_failure_is_told_once_with_its_reason():
    failed = FailedHooks()
    broken = ran(outcome="failed", reason="it ended with exit code 1: oops")
    assert failed.heard(ran()) == ()
    assert failed.heard(broken) == (describe_hook_failure(broken),)
    assert "oops" in str(describe_hook_failure(broken))
    assert failed.heard(broken) == failed.new((str(describe_hook_failure(broken)),)) == ()
    assert failed.heard(ran(outcome="timed_out", reason="too late")) != ()
