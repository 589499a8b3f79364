"""What aiohttp is told, and how often a request is sent that must not get lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from event_loops.skipping_loop import run_skipping, skipped_seconds
from openai_responses.endpoint import Endpoint
from openai_responses.errors import ApiRefused, ConnectionFailed, Failure
from openai_responses.transport import connections as module
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines, Timeouts

ENDPOINT = Endpoint("http://127.0.0.1:9/v1", "sk-1")


@pytest.mark.parametrize("seconds", [3.0, 45.0])
def test_limit_for_connecting_is_the_one_that_was_set(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other limit is aiohttp's: its own would end long answers."""
    told: list[aiohttp.ClientTimeout] = []

    async def request(*_: Any, timeout: aiohttp.ClientTimeout, **__: Any) -> None:
        told.append(timeout)
        raise aiohttp.ClientConnectionError

    async def close() -> None:
        return None

    session = SimpleNamespace(request=request, close=close)
    monkeypatch.setattr(module, "new_session", lambda _: session)

    async def ask() -> None:
        connections = Connections()
        limits = Deadlines(Timeouts(connect=seconds))
        with pytest.raises(ConnectionFailed):
            async with connections.request(ENDPOINT, "/responses", None, limits):
                pass
        await connections.close()

    asyncio.run(ask())

    assert [limit.sock_connect for limit in told] == [seconds]
    assert {limit.total for limit in told} == {None}


class Failing(Connections):
    """Connections whose requests all fail; it notes when they are sent."""

    def __init__(self, status: int) -> None:
        super().__init__()
        self.status = status
        self.sent_at: list[float] = []
        self.limits: set[Timeouts] = set()

    @asynccontextmanager
    async def request(self, *given: Any) -> AsyncIterator[Any]:
        """Fail: without an answer, or with a bad status."""
        self.sent_at.append(skipped_seconds())
        self.limits.add(given[3].timeouts)
        if not self.status:
            raise ConnectionFailed("No.")
        raise ApiRefused("No.", Failure(self.status))
        yield


@pytest.mark.parametrize(
    ("status", "sent_at"),
    [
        (0, [0, 0.5, 2.5]),
        (500, [0, 0.5, 2.5]),
        (429, [0, 0.5, 2.5]),
        (404, [0]),
        (499, [0]),
    ],
)
def test_cancellation_is_sent_three_times_at_the_most(
    status: int, sent_at: list[float]
) -> None:
    """A response that goes on costs money; a refusal is the last word."""
    connections = Failing(status)

    run_skipping(connections.post_quietly(ENDPOINT, "/responses/resp_1/cancel"))

    assert connections.sent_at == pytest.approx(sent_at)
    assert connections.limits == {Timeouts(connect=10, first_event=20)}
