"""What a model is asked for a hook, and what its verdict means at each event."""

import asyncio
import json
from typing import Any

import pytest
from tests.expected_types import require
from tests.waiting import until

from handaxe.contract.ports.hooks import HookModels, HookQuestion, HookUnreachable
from handaxe.hooks.config import AgentHook, PromptHook
from handaxe.hooks.external import MAX_EVENT_CHARS, build_hook_question, from_verdict
from handaxe.hooks.outcome import NOTHING
from handaxe.hooks.output import InvalidHookOutput
from handaxe.hooks.service import Hooks

PROMPT = PromptHook(prompt="ok?")
PATIENT = PromptHook(prompt="ok?", continue_on_block=True)
AGENT = AgentHook(prompt="ok?")
NO = '{"ok": false, "reason": "no tests"}'


def word(outcome):
    """An outcome in short: what it blocks, denies, stops."""
    if outcome is NOTHING:
        return "-"
    parts = {
        "blocked": outcome.blocked is not None,
        "denied": outcome.decision is not None and outcome.decision.verdict == "deny",
        "stopped": outcome.stop is not None,
        "told": bool(outcome.told),
    }
    return "+".join(name for name, is_so in parts.items() if is_so)


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("event", "prompt", "patient", "agent"),
    [
        ("Stop", "blocked", "blocked", "blocked"),
        ("SubagentStop", "blocked", "blocked", "blocked"),
        ("PreToolUse", "blocked+stopped+told", "denied", "denied"),
        ("PostToolUse", "blocked+stopped+told", "blocked", "blocked"),
        ("PostToolUseFailure", "blocked", "blocked", "blocked"),
        ("PostToolBatch", "blocked+told", "blocked+told", "blocked+told"),
        ("UserPromptSubmit", "blocked+told", "blocked+told", "blocked+told"),
        ("UserPromptExpansion", "blocked+told", "blocked+told", "blocked+told"),
        ("TaskCreated", "blocked", "blocked", "blocked"),
        ("TaskCompleted", "blocked", "blocked", "blocked"),
        ("TeammateIdle", "blocked+stopped+told", "blocked", "blocked"),
        ("PermissionRequest", "-", "-", "-"),
        ("PermissionDenied", "-", "-", "-"),
    ],
)
def test_what_a_no_means(event, prompt, patient, agent):
    said = [word(from_verdict(event, NO, hook)) for hook in (PROMPT, PATIENT, AGENT)]
    assert said == [prompt, patient, agent]
    assert from_verdict(event, '{"ok": true, "reason": "fine"}', PROMPT) is NOTHING


@pytest.mark.parametrize("event", ["Stop", "SubagentStop"])
def test_what_can_never_be_reached_lets_the_work_end(event):
    said = '{"ok": false, "reason": "no such file", "impossible": true}'
    assert word(from_verdict(event, said, PROMPT)) == "told"
    assert word(from_verdict(event, said, AGENT)) == "blocked"


@pytest.mark.parametrize(
    "said",
    [
        NO,
        f"```json\n{NO}\n```",
        f'I looked at {{x}} and {{"a": 1}}.\n\n{NO}\n',
        '{"ok": true}\nNo, wait.\n' + NO,
        '{"ok": false, "reason": "no tests", "more": {"ok": true}}',
        '{"ok": false, "reason": "no tests", "impossible": null}',
    ],
)
def test_a_verdict_is_found_among_other_words(said):
    assert from_verdict("Stop", said, PROMPT).blocked == "no tests"


@pytest.mark.parametrize(
    "said",
    ["", "ok", "yes", "{", "{}", "[true]", '{"ok": "true"}', '{"ok": 1}', '{"ok": null}', "{" * 5000,
     '{"ok": false', '"{\\"ok\\": true}"', '{"decision": "block"}'],
)  # fmt: skip
def test_words_without_a_verdict_are_no_answer(said):
    with pytest.raises(InvalidHookOutput):
        from_verdict("PreToolUse", said, PROMPT)


def test_a_no_without_a_reason_is_a_no():
    blocked = from_verdict("Stop", '{"ok": false}', PROMPT).blocked
    assert "without giving a reason" in require(blocked)


def test_the_event_stands_where_it_is_wanted_or_at_the_end():
    event = {"hook_event_name": "Stop", "cwd": "/x", "odd": "\udc80"}
    asked = build_hook_question(
        PromptHook(prompt="Is $ARGUMENTS fine? $ARGUMENTS", model="m"), event
    )
    told = asked.prompt.removeprefix("Is ").partition(" fine? ")
    assert told[0] == told[2]
    assert json.loads(told[0])["hook_event_name"] == "Stop"
    assert (asked.model, asked.may_look, asked.cwd) == ("m", False, "/x")
    appended = build_hook_question(AGENT, {"hook_event_name": "Stop"})
    assert appended.prompt.startswith("ok?\n\n{")
    assert appended.may_look


def test_an_event_that_is_too_long_is_cut_in_its_middle():
    event = {"hook_event_name": "Stop", "a": "x" * (2 * MAX_EVENT_CHARS), "last": "end"}
    asked = build_hook_question(PROMPT, event).prompt
    assert len(asked) < MAX_EVENT_CHARS + 100
    assert "characters left out" in asked
    assert asked.endswith('"last":"end"}')


class Answering(HookModels):
    """Says the same to everybody, or waits for ever, or fails."""

    def __init__(self, said: Any):
        self.said = said
        self.asked: list[HookQuestion] = []
        self.cancelled = asyncio.Event()

    async def answer(self, question) -> Any:
        self.asked.append(question)
        if isinstance(self.said, Exception):
            raise self.said
        if self.said is None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.cancelled.set()
                raise
        return self.said

    @property
    def name(self) -> str:
        return "answering"


def hooks_asking(models, kind="prompt", event="PreToolUse", **more):
    ran = []
    entry = {"type": kind, "prompt": "ok? $ARGUMENTS", **more}
    hooks = Hooks({event: [{"hooks": [entry]}]}, emit=ran.append)
    hooks.models = models
    return hooks, ran


ABOUT = {"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_use_id": "7", "cwd": "/"}


@pytest.mark.parametrize("kind", ["prompt", "agent"])
@pytest.mark.parametrize(
    ("said", "outcome"),
    [(None, "timed_out"), ("Certainly!", "failed"), (HookUnreachable("it is asleep"), "failed")],
)
@pytest.mark.parametrize("on_failure", ["open", "closed", None])
async def test_a_failure_is_judged_by_the_hooks_own_rule(kind, said, outcome, on_failure):
    more = {} if on_failure is None else {"on_failure": on_failure}
    hooks, ran = hooks_asking(Answering(said), kind, timeout=0.05, **more)
    heard = await hooks.fire(dict(ABOUT))
    assert [event.outcome for event in ran] == [outcome]
    assert (heard.blocked is not None) == (on_failure == "closed")
    assert bool(heard.notes) == (on_failure != "closed")
    assert heard.decision is None


async def test_at_the_timeout_whoever_works_on_it_is_stopped():
    models = Answering(None)
    hooks, _ = hooks_asking(models, timeout=0.05)
    await hooks.fire(dict(ABOUT))
    assert models.cancelled.is_set()


async def test_a_cancelled_call_stops_the_question():
    models = Answering(None)
    hooks, _ = hooks_asking(models)
    firing = asyncio.ensure_future(hooks.fire(dict(ABOUT)))
    await until(lambda: models.asked)
    firing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await firing
    assert models.cancelled.is_set()


async def test_within_a_hook_no_agent_is_asked_and_only_calls_are_told_of():
    models = Answering(NO)
    entries = [{"type": "agent", "prompt": "a"}, {"type": "prompt", "prompt": "p"}]
    hooks = Hooks({name: [{"hooks": entries}] for name in ("PreToolUse", "SubagentStop")})
    hooks.models = models
    inner = hooks.make_nested()
    assert (inner.watch_before, inner.watches("SubagentStop")) == (True, False)
    await inner.fire(dict(ABOUT))
    assert [asked.prompt[0] for asked in models.asked] == ["p"]
    models.asked.clear()
    await hooks.fire(dict(ABOUT))
    assert sorted(asked.prompt[0] for asked in models.asked) == ["a", "p"]
