"""Recorded answers through the built pipe: to a page, to a plain client, as JSON."""

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from aiohttp import web

from bench.host import Address, open_pipe
from recorded.answers import describe_difference
from recorded.rows import Difference, Recording
from recorded.shown import (
    Chunk,
    ShownAnswer,
    expected_answer,
    find_doubled_text,
    read_native,
    read_plain,
)
from upstream.server import Upstream, started

Json = dict[str, Any]
CHUNK_BYTES = 997
USER: Json = {"id": "user-1", "name": "Ada", "role": "user"}
PAGE: Json = {"chat_id": "temporary:s-1", "message_id": "m-1", "session_id": "s-1"}
QUESTION: Json = {
    "model": "recorded.gpt-5.2",
    "stream": True,
    "messages": [{"role": "user", "content": "Hi"}],
}
WAITING_TYPES = (
    "function_call",
    "custom_tool_call",
    "mcp_approval_request",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
)
"""Items that a client has to answer; a replay has none, so such answers are left out."""


class ReplayWay(NamedTuple):
    """One way to ask the pipe, and to read what it shows."""

    name: str
    metadata: Json
    reads_streams: bool
    """Whether it gets recorded streams; otherwise recorded JSON answers."""
    read: Callable[[Sequence[Chunk]], ShownAnswer]
    between: str
    """What stands between the texts of two messages."""


WAYS = (
    ReplayWay("page", PAGE, True, read_native, ""),
    ReplayWay("plain", {}, True, read_plain, "\n\n"),
    ReplayWay("page from JSON", PAGE, False, read_native, ""),
    ReplayWay("plain from JSON", {}, False, read_plain, "\n\n"),
)


async def replay_through_pipe(recordings: Iterable[Recording]) -> list[Difference]:
    """Return where the pipe shows something else than the final object contains.

    Answers that wait for a client are not replayed; the decoder reads them.
    """
    logging.disable(logging.CRITICAL)
    rows = [row for row in recordings if _is_replayable(row)]
    differences: list[Difference] = []
    upstream_row = _UpstreamRow()
    async with (
        Upstream(upstream_row.answer) as upstream,
        open_pipe(Address(upstream.base_url, "sk-recorded")) as pipe,
    ):
        for way in WAYS:
            pipe.valves.ENABLE_STREAM = way.reads_streams
            chosen = [row for row in rows if row.is_stream == way.reads_streams]
            for row in chosen:
                upstream_row.recording = row
                differences += await _compare(pipe, row, way)
            print(f"pipe, {way.name}: {len(chosen)} compared")
    return differences


class _UpstreamRow:
    """A server that answers with one recording after the other."""

    recording: Recording

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Send the recording; a stream in chunks that may end inside a character."""
        body = self.recording.body.encode()
        if not self.recording.is_stream:
            return web.Response(body=body, content_type="application/json")
        stream = await started(request)
        for start in range(0, len(body), CHUNK_BYTES):
            await stream.write(body[start : start + CHUNK_BYTES])
        return stream


def _is_replayable(recording: Recording) -> bool:
    if not recording.final or recording.status >= 400:
        return False
    output = recording.final.get("output") or []
    return not any(_is_waiting(item) for item in output)


def _is_waiting(item: Json) -> bool:
    if item["type"] == "tool_search_call":
        return bool(item.get("execution") == "client")
    return item["type"] in WAITING_TYPES


async def _compare(pipe: Any, recording: Recording, way: ReplayWay) -> list[Difference]:
    assert recording.final
    answer = await pipe.pipe(QUESTION, __user__=USER, __metadata__=way.metadata)
    chunks = [chunk async for chunk in answer]
    expected = expected_answer(recording.final.get("output") or [], way.between)
    shown = way.read(chunks)
    rows: list[tuple[str, str]] = []
    # Citations are shown as numbers.
    if not _has_citations(recording) and shown.text != expected.text:
        rows.append(("text", describe_difference(expected.text, shown.text)))
    if shown.thoughts != expected.thoughts:
        detail = describe_difference(expected.thoughts, shown.thoughts)
        rows.append(("thoughts", detail))
    status = recording.final.get("status")
    if bool(shown.failure) != (status != "completed"):
        rows.append(("ending", f"recorded {status}, shown {shown.failure!r}"))
    doubled = find_doubled_text(chunks) if way.metadata else ""
    if doubled:
        rows.append(("deltas are not the text", doubled))
    return [
        Difference(f"pipe, {way.name}: {name}", recording, detail)
        for name, detail in rows
    ]


def _has_citations(recording: Recording) -> bool:
    assert recording.final
    for item in recording.final.get("output") or []:
        if item["type"] == "message" and _cites(item):
            return True
    return False


def _cites(message: Json) -> bool:
    parts = message.get("content") or []
    return any(part.get("annotations") for part in parts)
