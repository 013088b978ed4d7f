"""Servers that run in this process, for clients that speak line by line."""

from pathlib import Path
from typing import Any

import pytest
from tests.frontends.mcp_server.raw_client import RawClient, blueprint_of, stopped


@pytest.fixture
async def connect(project: Path):
    """Starts servers for raw clients; all have ended when the test has."""
    clients: list[RawClient] = []
    stopped.clear()

    def start(root: Path | None = project, **options: Any) -> RawClient:
        clients.append(RawClient(blueprint_of(root, **options)))
        return clients[-1]

    yield start
    for client in clients:
        if not client.server.done():
            await client.close()
