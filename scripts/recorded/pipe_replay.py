"""Recorded streams through the built pipe, as a temporary chat of Open WebUI."""

import logging
from collections.abc import Iterable
from typing import Any

from bench.host import open_pipe
from bench.servers import Address
from recorded.answers import (
    AnswerFacts,
    describe_difference,
    facts_of_items,
    facts_of_response,
)
from recorded.rows import Difference, Recording
from upstream import Upstream, started

Json = dict[str, Any]
CHUNK_BYTES = 997
NATIVE: Json = {
    "__user__": {"id": "user-1", "name": "Ada", "role": "user"},
    "__metadata__": {
        "chat_id": "temporary:s-1",
        "message_id": "m-1",
        "session_id": "s-1",
    },
}
SHOWN_FACTS = ("text", "refusal", "summaries")


async def replay_through_pipe(recordings: Iterable[Recording]) -> list[Difference]:
    """Return where the page would show something else than the final object says.

    Streams that call functions are left to the decoder: there is nobody to run them.
    """
    logging.disable(logging.CRITICAL)
    streams = [row for row in recordings if _is_replayable(row)]
    waiting = list(streams)

    async def answer(request: Any) -> Any:
        stream = await started(request)
        body = waiting[0].body.encode()
        for start in range(0, len(body), CHUNK_BYTES):
            await stream.write(body[start : start + CHUNK_BYTES])
        return stream

    differences: list[Difference] = []
    async with (
        Upstream(answer) as upstream,
        open_pipe(Address(upstream.base_url, "sk-recorded")) as pipe,
    ):
        while waiting:
            differences += await _compare(pipe, waiting[0])
            waiting.pop(0)
    print(f"pipe: {len(streams)} compared")
    return differences


def _is_replayable(recording: Recording) -> bool:
    if not recording.is_stream or not recording.final or recording.status >= 400:
        return False
    return not facts_of_response(recording.final).calls


async def _compare(pipe: Any, recording: Recording) -> list[Difference]:
    body = {
        "model": "recorded.gpt-5.2",
        "stream": True,
        "messages": [{"role": "user", "content": "Hi"}],
    }
    chunks = [chunk async for chunk in await pipe.pipe(body, **NATIVE)]
    assert recording.final
    theirs = facts_of_response(recording.final)
    ours = _shown(chunks)
    rows = []
    for name in SHOWN_FACTS:
        own = getattr(ours, name)
        recorded = getattr(theirs, name)
        if name == "text" and theirs.sources:
            continue  # citations are shown as numbers
        if own.strip() != recorded.strip():
            detail = describe_difference(recorded, own)
            rows.append(Difference(f"pipe: {name}", recording, detail))
    failed = [chunk["error"]["message"] for chunk in chunks if "error" in chunk]
    if bool(failed) != (theirs.status != "completed"):
        detail = f"recorded {theirs.status}, shown {failed}"
        rows.append(Difference("pipe: ending", recording, detail))
    return rows


def _shown(chunks: list[Json]) -> AnswerFacts:
    """Return what the page shows at the end: the last form of each finished item."""
    finished: dict[int, Json] = {}
    for chunk in chunks:
        if chunk.get("type") == "response.output_item.done":
            finished[chunk["output_index"]] = chunk["item"]
    items = [finished[index] for index in sorted(finished)]
    return facts_of_items(items, None, "")
