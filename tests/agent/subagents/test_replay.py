"""The work of an agent and its subagents, recorded and played again."""

from pathlib import Path

import pytest
from tests.agent.subagents.improviser import FAMILIES, TURNS, record_work, replay_work


@pytest.mark.proves("AR-3")
async def test_twenty_turns_with_agents_of_different_speed_are_played_strictly_every_time(
    tmp_path: Path,
):
    file, talk = await record_work(tmp_path, seed=7)
    assert talk[0] == "completed"
    assert sum(message.startswith("[assistant]") for message in talk) == TURNS
    assert sum(message.count(": Agent]") for message in talk) == 2 * 3 * len(FAMILIES)
    for seed in range(3):
        assert await replay_work(file, tmp_path, seed) == talk
