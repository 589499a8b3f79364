"""Answers to programs over plain HTTP."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest

from owui_manifold.host.http_answers import event_stream
from stand_in.host import StandInHost

pytestmark = pytest.mark.asyncio


async def test_stream_that_is_left_ends_the_answer_at_once(host: StandInHost) -> None:
    """Else the model would go on until Python finds the answer."""

    def response(lines: Any, **_: str) -> Any:
        return lines

    host.provide("functions", StreamingResponse=response)
    ended: list[bool] = []

    async def chunks() -> AsyncGenerator[dict[str, Any], None]:
        try:
            yield {"id": "1"}
            yield {"id": "2"}
        finally:
            ended.append(True)

    answer = chunks()
    lines = event_stream(answer)

    assert await anext(lines) == 'data: {"id": "1"}\n\n'
    await lines.aclose()
    assert ended == [True]
