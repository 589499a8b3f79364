"""Streams of gateways that end in odd ways: `tests/streams/others`, one response each.

Most are written by hand in the shapes that people have reported, and have the name of
what they show; those with the version of a server are recorded.
"""

from pathlib import Path

from aiohttp import web

from upstream.server import Answerer, stream_in_pieces

FOLDER = Path(__file__).resolve().parents[1] / "streams" / "others"

ANSWER = "It rains in Zürich 🌧 today.\n"
CITY = '{"city":"Zürich"}'

WHOLE_ANSWERS = (
    "empty-final-content",
    "empty-final-text",
    "null-final-content",
    "shorter-final-text",
    "no-item-done-empty-output",
    "no-item-done-null-output",
    "no-item-done-no-output",
    "nothing-announced",
    "item-ends-early",
    "item-ends-early-no-output",
    "item-ends-early-longer-output",
    "item-ends-twice",
    "completed-without-body",
    "completed-with-null-body",
    "message-after-empty-response",
    "summary-only-in-deltas",
    "server-run-custom-call",
    "content-as-text",
    "token-counts-as-numbers-with-fraction",
    "token-counts-as-texts",
    "doubled-message",
)
"""Those in which ANSWER arrives, and the response is complete."""

CALLS = (
    "call-with-empty-final-arguments",
    "call-with-null-final-arguments",
    "call-with-no-final-arguments",
    "call-with-placeholder-final-arguments",
    "call-arguments-only-done",
    "call-never-ended",
    "call-ends-early",
    "call-with-object-arguments",
    "call-with-spaces-around-name",
)
"""Those in which the weather of CITY is asked for."""

LATE_ENDS = "llama.cpp-b11434-think-then-text"
"""All items end at the end of the stream."""

OTHERS = (
    "no-item-done-incomplete",
    "empty-last-message",
    "call-with-null-arguments",
    "azure-status-details",
    LATE_ENDS,
)
"""Those with an expectation of their own."""


def stream_of(name: str) -> bytes:
    """Return the stream of one response."""
    return (FOLDER / f"{name}.sse").read_bytes()


def sending(*names: str, size: int | None = None) -> Answerer:
    """Answer with these streams in turn, whole or in chunks of this size."""
    left = list(names)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await stream_in_pieces(request, stream_of(left.pop(0)), size)

    return answer
