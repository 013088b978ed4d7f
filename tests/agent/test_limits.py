"""How far an agent may go."""

from typing import Any

import pytest
from players import Player, calls, ended, says

from handaxe import Agent, Session, SetupError
from handaxe.agent.events import Told
from handaxe.agent.limits import Meter, Price, RunLimits
from handaxe.contract.messages import TokenUsage
from handaxe.contract.ports.model import ModelFailed, TextDelta

PRICE = Price(input=1.0, output=10.0, cache_read=0.1)


@pytest.mark.parametrize(
    ("usage", "dollars"),
    [
        (TokenUsage(), 0.0),
        (TokenUsage(input_tokens=1_000_000), 1.0),
        (TokenUsage(output_tokens=500_000), 5.0),
        (TokenUsage(cache_read_tokens=1_000_000), 0.1),
        (TokenUsage(cache_write_tokens=1_000_000), 1.0),
    ],
)
def test_a_price_is_for_a_million_tokens(usage: TokenUsage, dollars: float):
    assert PRICE.of(usage) == pytest.approx(dollars)


def test_time_is_a_limit():
    clock = [0.0]
    meter = Meter(RunLimits(max_wall_s=5), now=lambda: clock[0])
    assert meter.check_limits() is None
    clock[0] = 5.0
    reached = meter.check_limits()
    assert reached is not None
    assert reached.reason == "time_limit"


async def test_the_end_of_the_time_stops_what_runs(session: Session):
    sleep = ("c", "Bash", {"command": "sleep 60"})
    model = Player(calls(sleep), says("Hi."))
    agent = Agent(model, session, max_wall_s=0.5)
    final = await agent.ask("Go.")
    assert (final.is_error, final.terminal_reason) == (True, "time_limit")
    assert (await agent.ask("And now?")).result == "Hi."
    told = str(model.requests[1].messages)
    assert "before you repeat it" in told
    assert "interrupted by user" not in told


def test_what_a_sub_agent_uses_counts_for_its_parent():
    parent = Meter(RunLimits(max_tokens=100))
    child = Meter(RunLimits(), parent=parent)
    child.add("m", TokenUsage(input_tokens=90, output_tokens=10))
    assert parent.usage.input_tokens == 90
    assert child.check_limits() is not None


def test_a_parents_turns_do_not_stop_its_agents():
    parent = Meter(RunLimits(max_turns=1))
    parent.turns = 1
    assert Meter(RunLimits(), parent=parent).check_limits() is None


async def test_tokens_and_money_end_a_run(session: Session):
    ends: list[tuple[dict[str, Any], str]] = [
        ({"max_tokens": 50}, "error_during_execution"),
        ({"max_cost_usd": 0.00001, "prices": {"player": PRICE}}, "error_max_budget_usd"),
    ]
    for options, subtype in ends:
        model = Player(calls(("c1", "Glob", {"pattern": "*"}), tokens=100), says("No."))
        final = await Agent(model, session, **options).ask("Go.")
        assert (final.subtype, final.is_error) == (subtype, True)


async def test_before_a_budget_ends_the_model_is_told_once(session: Session):
    looks = (calls((f"c{n}", "Glob", {"pattern": f"{n}*"}), tokens=40) for n in range(3))
    model = Player(*looks, says("Done."))
    agent = Agent(model, session, max_tokens=180)
    told = [event.sentence async for event in agent.run("Go.") if isinstance(event, Told)]
    (sentence,) = told
    assert sentence.startswith("The budget is almost used up: 1")
    heard = [sentence in repr(request.messages) for request in model.requests]
    assert heard[:2] == [False, False]
    assert heard[-1]
    assert repr(model.requests[-1].messages).count(sentence) == 1


def test_money_has_a_soft_limit_too_and_a_new_run_warns_again():
    meter = Meter(RunLimits(max_cost_usd=1.0), {"m": PRICE})
    meter.add("m", TokenUsage(input_tokens=700_000))
    assert meter.check_near_limit() is None
    meter.add("m", TokenUsage(input_tokens=150_000))
    assert meter.check_near_limit() == "The budget is almost used up: $0.8500 of $1.0000."
    assert meter.check_near_limit() is None
    meter.start()
    meter.add("m", TokenUsage(input_tokens=900_000))
    assert meter.check_near_limit() is not None


async def test_a_budget_without_a_price_is_a_start_error(session: Session):
    with pytest.raises(SetupError, match="needs the price of 'player'"):
        Agent(Player(), session, max_cost_usd=1.0)


@pytest.mark.parametrize(
    "option",
    [
        {"max_turns": 0}, {"max_tokens": 0}, {"max_cost_usd": 0.0}, {"max_cost_usd": float("nan")},
        {"max_cost_usd": float("inf")}, {"max_wall_s": -1.0}, {"effort": "hihg"},
    ],
    ids=str,
)  # fmt: skip
async def test_an_option_that_cannot_hold_is_a_start_error(session: Session, option: dict):
    with pytest.raises(SetupError, match=next(iter(option))):
        Agent(Player(says("Hi.")), session, prices={"player": PRICE}, **option)


async def test_costs_are_told_where_prices_are_known(session: Session):
    model = Player(says("Hi.", tokens=1_000_000))
    final = await Agent(model, session, prices={"player": PRICE}).ask("Go.")
    assert final.cost_usd == pytest.approx(1.0001)
    assert (await Agent(Player(says("Hi.")), session).ask("Go.")).cost_usd is None


async def test_a_budget_holds_where_a_server_answers_under_another_name(session: Session):
    read = ("c", "Read", {"file_path": "a"})
    model = Player(calls(read, tokens=2_000_000), says("Hi."), name="asked")
    agent = Agent(model, session, prices={"asked": PRICE}, max_cost_usd=1.0)
    final = await agent.ask("Go.")
    assert final.subtype == "error_max_budget_usd"
    assert list(final.model_usage) == ["asked"]


async def test_what_was_said_before_a_new_prompt_is_no_part_of_the_answer(session: Session):
    broken = ModelFailed("broken_stream", "The stream broke off.")
    model = Player(says("Old."), [TextDelta("One, "), broken], says("two."), says("Three."))
    agent = Agent(model, session)
    said = [(await agent.ask("Go.")).result for _ in range(3)]
    assert said == ["Old.", "One, two.", "Three."]


@pytest.mark.parametrize(("reason", "told"), [("max_tokens", "cut off"), ("pause_turn", "paused")])
async def test_an_answer_that_ended_too_early_goes_on(session: Session, reason: str, told: str):
    model = Player([TextDelta("One, "), ended(reason)], says("two."))
    final = await Agent(model, session).ask("Count.")
    assert final.result == "One, two."
    assert told in str(model.requests[1].messages[-1])
