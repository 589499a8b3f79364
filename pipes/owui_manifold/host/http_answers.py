"""Answers to programs over plain HTTP, in the forms that Open WebUI passes on as they are.

Open WebUI puts an end of its own after what a generator yields, a second `finish_reason`
and a `[DONE]`; of a StreamingResponse it sends each line unchanged. Its status gets
lost: Open WebUI calls the pipe when its own response has begun.

A failed answer in one piece is another kind of response: `/api/v1/messages` translates
each StreamingResponse as if it were a stream (docs/reference/open-webui.md, "Answers to
programs").
"""

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from owui_chat.render.chunks import Chunk
from owui_host.lookup import HostTooOld, host_name


def event_stream(chunks: AsyncGenerator[Chunk, None]) -> Any:
    """Return a response that streams `chunks`, and closes them when it is left.

    A host without such responses gets the chunks.
    """
    try:
        response = host_name("functions", "StreamingResponse")
    except HostTooOld:
        return chunks

    async def lines() -> AsyncGenerator[str, None]:
        """Yield one text for each event: stream filters get what one text holds."""
        async with aclosing(chunks):
            async for chunk in chunks:
                yield f"data: {json.dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"

    return response(lines(), media_type="text/event-stream")


def failure_response() -> Callable[..., Any] | None:
    """Return the class of a response with a status; None on a host without it."""
    try:
        response: Callable[..., Any] = host_name("functions", "Response")
    except HostTooOld:
        return None
    return response
