"""Answers to programs over plain HTTP, in the forms that Open WebUI passes on as they are.

Open WebUI puts an end of its own after what a generator yields, a second `finish_reason`
and a `[DONE]`; of a StreamingResponse it sends each line unchanged. Its status gets
lost: Open WebUI calls the pipe when its own response has begun.

Of an answer in one piece it sends a dict with the status 200, and what `model_dump` of a
model of pydantic returns as it is: a response keeps its status and its headers. A
StreamingResponse would do that as well, except for `/api/v1/messages`, which translates
each of them as if it were a stream (docs/reference/open-webui.md, "Answers to
programs").
"""

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from pydantic import BaseModel

from owui_chat.render.chunks import Chunk, whole_characters
from owui_host.lookup import HostTooOld, host_name


def event_stream(chunks: AsyncGenerator[Chunk, None]) -> Any:
    """Return a response that streams `chunks`, and closes them when it is left.

    A host without such responses gets the chunks.
    """
    try:
        response = host_name("functions", "StreamingResponse")
    except HostTooOld:
        return chunks
    return response(_event_lines(chunks), media_type="text/event-stream")


async def _event_lines(
    chunks: AsyncGenerator[Chunk, None],
) -> AsyncGenerator[str, None]:
    """Yield one text for each event, because stream filters get what one text holds."""
    async with aclosing(chunks):
        async for chunk in chunks:
            yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


class _DumpedResponse(BaseModel):
    """A response that Open WebUI unpacks from here."""

    response: Any

    def model_dump(self, **_: Any) -> Any:
        return self.response


def failed_answer(result: Chunk, status: int, headers: Mapping[str, str]) -> Any:
    """Return a result with the status of a failure.

    A host without such responses gets the result alone.
    """
    try:
        response = host_name("functions", "Response")
    except HostTooOld:
        return result
    body = json.dumps(whole_characters(result))
    sent = {"Content-Type": "application/json", **headers}
    return _DumpedResponse(response=response(body, status, sent))
