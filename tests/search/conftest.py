"""The tests of this folder share a small tree to search."""

import sys
from pathlib import Path

import pytest

from handaxe.search.local_search import LocalSearch
from handaxe.search.rg import fallback
from handaxe.search.walk import unchanged_paths

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def search() -> LocalSearch:
    return LocalSearch()


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """A second look comes to its end however busy the machine is."""
    monkeypatch.setattr(fallback, "LOOK_S", 30)


@pytest.fixture
def settled(monkeypatch):
    """New files count as old ones: what was found in them is not looked at again."""
    monkeypatch.setattr(unchanged_paths, "MARGIN_NS", -60_000_000_000)
