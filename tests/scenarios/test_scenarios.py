"""Every scenario file plays as it is written."""

from pathlib import Path

import pytest

from handaxe.testing.scenario import read_scenario, run_scenario

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("*/*.toml"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
async def test_scenario_plays_as_written(path: Path, project: Path, tmp_path: Path):
    assert await run_scenario(read_scenario(path), project, tmp_path / "home") == []


def test_there_are_scenarios_for_every_folder():
    assert all(
        any(folder.glob("*.toml"))
        for folder in HERE.iterdir()
        if folder.is_dir() and folder.name != "__pycache__"
    )
