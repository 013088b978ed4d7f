"""How long a stream may pause can be set."""

import pytest

from handaxe.models.http.asyncio_transport import DirectTransport
from handaxe.models.http.connect import open_transport
from handaxe.models.http.httpx_transport import ClientTransport
from handaxe.models.http.transport import IDLE_TIMEOUT_S


@pytest.mark.proves("AR-3")
@pytest.mark.parametrize(
    ("value", "limit_s"),
    [("250", 0.25), ("", IDLE_TIMEOUT_S), ("soon", IDLE_TIMEOUT_S), ("-1", IDLE_TIMEOUT_S)],
)
@pytest.mark.parametrize("proxy", [{}, {"http_proxy": "http://127.0.0.1:9"}])
async def test_the_variable_sets_the_limit(value: str, limit_s: float, proxy: dict[str, str]):
    wire = open_transport("http://example.org", {"CLAUDE_STREAM_IDLE_TIMEOUT_MS": value, **proxy})
    assert isinstance(wire, DirectTransport | ClientTransport)
    assert wire._idle_timeout_s == limit_s
    await wire.close()
