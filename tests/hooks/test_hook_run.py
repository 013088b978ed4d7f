"""Hooks at work: side by side, merged in order, limited in time; a broken one stops no other."""

import asyncio
import json

import pytest
from tests.expected_types import require
from tests.waiting import HANG_S, until

from handaxe.contract.decision import Allow, Ask, Deny
from handaxe.contract.ports.hooks import HookUnreachable
from handaxe.hooks import dispatcher
from handaxe.hooks.config import ARGUMENTS, read_hooks
from handaxe.hooks.external import HookPolicy
from handaxe.hooks.local_runner import LocalHookPrograms
from handaxe.hooks.outcome import NOTHING, Outcome
from handaxe.hooks.service import Hooks


def about(event="PreToolUse", **more):
    return {"hook_event_name": event, "tool_name": "Edit", "tool_use_id": "7", "cwd": "/", **more}


def shell(line, **more):
    return {"type": "command", "command": line, **more}


def says(**answer):
    return f"printf %s '{json.dumps(answer)}'"


def waits_for(path):
    return f"until [ -e {path} ]; do sleep 0.01; done"


class Bench:
    """Hooks with real programs, and what they were seen to do."""

    def __init__(self, hooks, **more):
        self.ran = []
        self.programs = LocalHookPrograms()
        self.hooks = Hooks(hooks, programs=self.programs, emit=self.ran.append, **more)

    async def fire(self, **more):
        return await self.hooks.fire(about(**more))

    @property
    def outcomes(self):
        return [ran.outcome for ran in self.ran]

    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        await self.hooks.close()


@pytest.mark.proves("HK-1")
async def test_a_program_is_sent_the_event_and_its_answer_counts(tmp_path):
    seen = tmp_path / "seen"
    lines = shell(f"cat > {seen}; " + says(decision="block", reason="no"))
    async with Bench({"PreToolUse": [{"matcher": "Edit", "hooks": [lines]}]}) as bench:
        outcome = await bench.fire(tool_input={"file_path": "/a", "odd": "\udc80"})
        assert await bench.fire(tool_name="Read") is NOTHING
    assert require(outcome.decision).verdict == "deny"
    assert require(outcome.decision).reason == "no"
    event = json.loads(seen.read_text())
    assert event["hook_event_name"] == "PreToolUse"
    assert event["tool_input"]["file_path"] == "/a"


@pytest.mark.proves("HK-1")
async def test_hooks_run_side_by_side_and_merge_in_their_written_order(tmp_path):
    async def slow(event):
        # Only if all of them run at the same time, any of them comes to its end.
        await until(lambda: all((tmp_path / name).exists() for name in ("1", "3", "4")))
        (tmp_path / "all").touch()
        return Outcome(input={"by": "slow"}, messages=("slow",), decision=Allow())

    def meets(name, then, **answer):
        line = f"cd {tmp_path}; touch {name}; {waits_for('all')}; {then}"
        return {"hooks": [shell(f"{line}; {says(hookSpecificOutput=answer)}")]}

    hooks = [
        meets(1, waits_for("last"), additionalContext="first"),
        slow,
        meets(3, "true", updatedInput={"by": "third"}),
        meets(4, "touch last", permissionDecision="ask"),
    ]
    async with Bench({"PreToolUse": hooks}) as bench:
        outcome = await bench.fire()
    assert outcome.messages == ("first", "slow")
    assert outcome.input == {"by": "third"}
    assert isinstance(outcome.decision, Ask)
    assert bench.outcomes == ["added", "allowed", "changed", "asked"]


async def test_identical_programs_run_once_and_background_ones_each_time(tmp_path):
    line = shell(f"echo x >> {tmp_path}/ran")
    late = shell(f"echo y >> {tmp_path}/late", **{"async": True})
    groups = [
        {"matcher": "Edit", "hooks": [line, late]},
        {"matcher": "*", "hooks": [line, late, shell(f"echo x >> {tmp_path}/ran", timeout=5)]},
    ]
    async with Bench({"PreToolUse": groups}) as bench:
        await bench.fire()
    assert (tmp_path / "ran").read_text() == "x\nx\n"
    assert (tmp_path / "late").read_text() == "y\ny\n"


@pytest.mark.proves("HK-2")
@pytest.mark.parametrize(
    "line", ["exit 1", "exit 127", "kill -9 $$", "echo '{'", "sleep 600", "/no/such/program"]
)
async def test_a_failing_program_blocks_only_if_it_is_closed(line):
    for on_failure, blocks in ((None, False), ("open", False), ("closed", True)):
        entry = shell(line, timeout=0.2 if line == "sleep 600" else HANG_S)
        if on_failure:
            entry["on_failure"] = on_failure
        async with Bench({"PreToolUse": [{"hooks": [entry]}]}) as bench:
            outcome = await bench.fire()
        assert (outcome.blocked is not None) is blocks
        assert bool(outcome.notes) is not blocks
        assert outcome.decision is None
        assert bench.outcomes == ["timed_out" if line == "sleep 600" else "failed"]


@pytest.mark.proves("HK-2")
async def test_a_failing_function_blocks_unless_it_is_open():
    async def crash(event):
        raise ValueError("planned")

    async def hang(event):
        await asyncio.sleep(30)

    async def nonsense(event):
        return 3

    async def cancel_itself(event):
        raise asyncio.CancelledError

    for hook in (crash, hang, nonsense, cancel_itself):
        for on_failure, blocks in (("open", False), ("closed", True), (None, True)):
            group = {"hooks": [hook], "timeout": 0.05}
            if on_failure:
                group["on_failure"] = on_failure
            bench = Bench({"PreToolUse": [group], "PostToolUse": [group]})
            outcome = await bench.fire()
            assert (outcome.blocked is not None) is blocks
            after = await bench.fire(event="PostToolUse")
            assert (after.blocked is not None) is (on_failure == "closed")


async def test_a_function_that_will_not_be_stopped_is_left_behind():
    released = asyncio.Event()

    async def stubborn(event):
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    bench = Bench({"PreToolUse": [{"hooks": [stubborn], "timeout": 0.05}]})
    outcome = await bench.fire()
    assert "did not finish within 0.05 s" in require(outcome.blocked)
    released.set()
    await until(lambda: len(asyncio.all_tasks()) == 1)


@pytest.mark.proves("HK-1")
async def test_one_broken_hook_stops_no_other():
    async def crash(event):
        raise ValueError("planned")

    async def add(event):
        return Outcome(messages=("still here",))

    hooks = [crash, {"hooks": [shell("exit 7"), shell("sleep 30", timeout=0.2)]}, add]
    async with Bench({"PostToolUse": hooks}) as bench:
        outcome = await bench.fire(event="PostToolUse")
    assert outcome.messages == ("still here",)
    assert bench.outcomes == ["failed", "failed", "timed_out", "added"]
    assert len(outcome.notes) == 3


async def test_no_hook_can_change_what_another_sees():
    async def meddle(event):
        event["tool_input"]["items"].append("x")
        event["tool_name"] = "Other"

    seen = []

    async def look(event):
        seen.append((event["tool_name"], event["tool_input"]["items"]))

    bench = Bench({"PreToolUse": [meddle, look]})
    event = about(tool_input={"items": ["a"]})
    await bench.hooks.fire(event)
    assert seen == [("Edit", ["a"])]
    assert event["tool_input"] == {"items": ["a"]}


@pytest.mark.proves("HK-1")
async def test_nobody_waits_for_a_background_hook_and_its_words_come_later(tmp_path):
    answer = says(
        decision="block",
        hookSpecificOutput={"permissionDecision": "deny", "additionalContext": "L"},
    )
    line = shell(f"{waits_for(tmp_path / 'go')}; touch {tmp_path}/ran; {answer}", **{"async": True})
    async with Bench({"PreToolUse": [{"hooks": [line]}]}) as bench:
        assert await bench.fire() is NOTHING
        assert bench.hooks.take_late() == ()
        (tmp_path / "go").touch()
        await until(lambda: bench.ran)
    assert (tmp_path / "ran").exists()
    assert bench.hooks.take_late() == ("L",)
    assert bench.hooks.take_late() == ()
    assert bench.ran[0].in_background


async def test_a_background_hook_may_ask_to_be_heard():
    line = shell("echo look >&2; exit 2", asyncRewake=True)
    async with Bench({"PostToolUse": [{"hooks": [line]}]}) as bench:
        assert await bench.fire(event="PostToolUse") is NOTHING
    assert bench.hooks.take_late() == ("look",)


async def test_background_hooks_are_bounded_and_ended_at_the_close(monkeypatch):
    monkeypatch.setattr(dispatcher, "MAX_WAITING", 2)
    monkeypatch.setattr(dispatcher, "GRACE_S", 0.2)
    line = shell("sleep 600", **{"async": True})
    bench = Bench({"PostToolUse": [{"hooks": [line]}]})
    for _ in range(15):
        await bench.fire(event="PostToolUse")
    await until(lambda: len(bench.ran) >= 5)
    assert bench.outcomes == ["failed"] * 5
    assert "too many" in bench.ran[0].reason
    await bench.hooks.close()
    assert not bench.programs._running


async def test_cancelling_ends_all_hooks_of_a_call(tmp_path):
    stopped = []

    async def wait(event):
        try:
            await asyncio.sleep(600)
        finally:
            stopped.append(True)

    lines = [shell(f"echo $$ > {tmp_path}/{n}; exec sleep 600") for n in "ab"]
    async with Bench({"PreToolUse": [{"hooks": [*lines, wait]}]}) as bench:
        running = asyncio.create_task(bench.fire())
        await until(lambda: all((tmp_path / n).exists() for n in "ab"))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await asyncio.sleep(0)
        assert stopped == [True]
        await until(lambda: not bench.programs._running)


@pytest.mark.proves("HK-1")
async def test_programs_find_the_project_and_the_session_in_their_environment():
    policy = HookPolicy(env={"CLAUDE_PROJECT_DIR": "/the project", "MINE": "yes"})
    lines = [
        shell('echo "$CLAUDE_PROJECT_DIR|${CLAUDE_PROJECT_DIR}|$MINE|$CLAUDE_CODE_SESSION_ID"'),
        shell("printf", args=["%s", "${CLAUDE_PROJECT_DIR}/x ${HOME} ${CLAUDE_NOPE}"]),
    ]
    async with Bench({"SessionStart": [{"hooks": lines}]}, policy=policy) as bench:
        outcome = await bench.fire(event="SessionStart", source="startup", session_id="s1")
    assert outcome.messages == (
        "/the project|/the project|yes|s1",
        "/the project/x ${HOME} ${CLAUDE_NOPE}",
    )


async def test_long_words_are_kept_elsewhere_and_shown_from_both_ends():
    kept = []

    def keep(text):
        kept.append(text)
        return "/kept/1"

    async def talk(event):
        return Outcome(messages=("x" * 20_000,), blocked="y" * 20_000)

    outcome = await Bench({"PreToolUse": [talk]}, keep=keep).fire()
    assert len(outcome.messages[0]) < 10_000
    assert "/kept/1" in outcome.messages[0]
    assert sorted(map(len, kept)) == [20_000, 20_000]
    outcome = await Bench({"PreToolUse": [talk]}).fire()
    assert len(outcome.messages[0]) < 10_100


@pytest.mark.proves("HK-1")
async def test_the_trace_says_who_changed_what():
    async def rewrite(event):
        return {
            "systemMessage": "changed",
            "hookSpecificOutput": {"updatedInput": {"a": 2}, "permissionDecision": "allow"},
        }

    async def stop(event):
        return {"continue": False, "stopReason": "enough"}

    bench = Bench({"PreToolUse": [{"matcher": "Edit|Write", "hooks": [rewrite, stop]}]})
    outcome = await bench.fire()
    assert outcome.stop == "enough"
    first, second = bench.ran
    assert (first.event, first.matcher, first.call_id) == ("PreToolUse", "Edit|Write", "7")
    assert first.hook.endswith("rewrite")
    assert (first.outcome, first.input, first.told) == ("allowed", {"a": 2}, ("changed",))
    assert (second.outcome, second.reason) == ("stopped", "enough")
    assert first.duration_ms >= 0


async def test_a_matcher_also_knows_a_tools_other_names():
    async def block(event):
        return Outcome(blocked="no")

    bench = Bench({"PreToolUse": [{"matcher": "Task", "hooks": [block]}]})
    assert await bench.hooks.fire(about(tool_name="Agent")) is NOTHING
    assert (await bench.hooks.fire(about(tool_name="Agent"), aliases=("Task",))).blocked == "no"


@pytest.mark.proves("HK-1")
async def test_a_condition_chooses_among_calls():
    async def block(event):
        return Outcome(blocked="no")

    group = {"hooks": [{"type": "callable", "call": block, "if": "Edit(*.py)"}]}
    bench = Bench({"PreToolUse": [group]})
    assert await bench.hooks.fire(about(), covers=lambda rule: rule != "Edit(*.py)") is NOTHING
    assert (await bench.hooks.fire(about(), covers=lambda rule: True)).blocked == "no"


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("event", "more"),
    [
        ("UserPromptSubmit", {"prompt": "hi"}),
        ("Stop", {"stop_hook_active": False}),
        ("Notification", {"message": "m", "notification_type": "idle_prompt"}),
    ],
)
async def test_events_of_the_agent_loop_can_be_fired(event, more):
    hooks = {event: [{"hooks": [shell("echo no >&2; exit 2")]}]}
    async with Bench(hooks) as bench:
        outcome = await bench.fire(event=event, **more)
    assert outcome.blocked == (None if event == "Notification" else "no")


async def test_only_allowed_addresses_are_reached():
    group = {"hooks": [{"type": "http", "url": "http://127.0.0.1:1/x"}]}
    policy = HookPolicy(http_urls=("https://hooks.example/*",))
    async with Bench({"PostToolUse": [group]}, policy=policy) as bench:
        outcome = await bench.fire(event="PostToolUse")
    assert "do not allow" in outcome.notes[0]


async def test_a_hook_whose_partner_is_missing_fails_by_its_own_rule():
    groups = [
        {"hooks": [{"type": "prompt", "prompt": "ok?"}]},
        {"hooks": [{"type": "mcp_tool", "server": "s", "tool": "t", "on_failure": "closed"}]},
    ]
    async with Bench({"PreToolUse": groups}) as bench:
        outcome = await bench.fire()
    assert "it needs a model, and this session has no agent" in outcome.notes[0]
    assert "no MCP server is configured" in require(outcome.blocked)


async def test_without_a_way_out_programs_fail_and_functions_run():
    hooks = Hooks({"PreToolUse": [{"hooks": [shell("true", on_failure="closed")]}]})
    assert "no access to programs or servers" in require((await hooks.fire(about())).blocked)


def test_no_answer_carries_its_sentence():
    assert HookUnreachable("x").sentence == "x"


async def test_the_strictest_of_many_words_wins_whatever_their_order():
    async def allow(event):
        return Outcome(decision=Allow())

    async def ask(event):
        return Outcome(decision=Ask("hm"))

    async def deny(event):
        return Outcome(decision=Deny("no"))

    for order in ([allow, ask, deny], [deny, allow, ask], [ask, deny, allow]):
        assert require((await Bench({"PreToolUse": order}).fire()).decision).reason == "no"


@pytest.mark.proves("HK-1")
@pytest.mark.parametrize(
    ("fired", "ran"),
    [
        ([{}], 1),
        ([{}, {}, {}], 1),
        ([{"tool_name": "Read"}, {}, {}], 1),
        ([{"tool_name": "Read"}], 0),
        ([{}, {"tool_name": "Write"}], 2),
    ],
)
async def test_a_hook_that_runs_once_is_gone_afterwards(tmp_path, fired, ran):
    once = shell(f"echo x >> {tmp_path}/ran", once=True)
    groups = [{"matcher": "Edit", "hooks": [once]}, {"matcher": "Write", "hooks": [once]}]
    async with Bench({"PreToolUse": groups}) as bench:
        for more in fired:
            await bench.fire(**more)
    assert len(bench.ran) == ran


async def test_once_means_once_however_it_runs_and_ends(tmp_path):
    heard = []

    async def crash(event):
        heard.append(event)
        await asyncio.sleep(0)
        raise ValueError("planned")

    hooks = {
        "PreToolUse": [
            {"hooks": [{"type": "callable", "call": crash, "once": True}]},
            {"hooks": [shell(f"echo x >> {tmp_path}/late", once=True, **{"async": True})]},
        ]
    }
    async with Bench(hooks) as bench:
        outcomes = await asyncio.gather(*(bench.fire() for _ in range(3)))
        # Settings that are read again do not bring it back.
        bench.hooks.configure(read_hooks(hooks, source=ARGUMENTS), None, bench.programs)
        await bench.fire()
    assert sorted(outcome.blocked is not None for outcome in outcomes) == [False, False, True]
    assert len(heard) == 1
    assert (tmp_path / "late").read_text() == "x\n"
