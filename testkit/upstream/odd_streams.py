"""Streams of gateways that end in odd ways: `testkit/streams/others`, one response each.

Most are written by hand in the shapes that people have reported, and have the name of
what they show; those with the version of a server are recorded.
"""

from pathlib import Path
from typing import Any

from aiohttp import web

from upstream.server import Answerer, stream_in_pieces

FOLDER = Path(__file__).resolve().parents[1] / "streams" / "others"

ANSWER = "It rains in Zürich 🌧 today.\n"
CITY = '{"city":"Zürich"}'

_WHOLE_ANSWERS = """
empty-final-content empty-final-text null-final-content shorter-final-text
no-item-done-empty-output no-item-done-null-output no-item-done-no-output
nothing-announced item-ends-early item-ends-early-no-output
item-ends-early-longer-output item-ends-twice completed-without-body
completed-with-null-body message-after-empty-response summary-only-in-deltas
server-run-custom-call content-as-text token-counts-as-numbers-with-fraction
token-counts-as-texts doubled-message end-of-another-name
"""
WHOLE_ANSWERS = tuple(_WHOLE_ANSWERS.split())
"""Those in which ANSWER arrives, and the response is complete."""

_CALLS = """
call-with-empty-final-arguments call-with-null-final-arguments
call-with-no-final-arguments call-with-placeholder-final-arguments
call-arguments-only-done call-never-ended call-ends-early call-with-object-arguments
call-with-spaces-around-name
"""
CALLS = tuple(_CALLS.split())
"""Those in which the weather of CITY is asked for."""

LATE_ENDS = "llama.cpp-b11434-think-then-text"
"""All items end at the end of the stream."""

FULL_CONTEXT = "llama.cpp-b10434-full-context"
"""The context of 256 tokens is full in the middle of a sentence."""

SERVER_RUN = "server-run-function"
"""The server is an agent: it calls its own tool, and shows what that returned."""

GATEWAY_RUN = "gateway-ran-a-remote-call"
"""LiteLLM makes the calls of a remote server, and goes on in a second response."""

OTHERS = (
    SERVER_RUN,
    GATEWAY_RUN,
    "no-item-done-incomplete",
    "completed-that-is-incomplete",
    "empty-last-message",
    "call-with-null-arguments",
    "azure-status-details",
    "items-of-one-id",
    LATE_ENDS,
    FULL_CONTEXT,
)
"""Those with an expectation of their own."""


NO_EYES = {
    "code": 500,
    "message": "image input is not supported - hint: if this is unexpected, you may need "
    "to provide the mmproj",
    "type": "server_error",
}
"""What llama.cpp says of an image, with its status 500 (recorded, b10434)."""


async def answer_without_eyes(request: web.Request) -> web.StreamResponse:
    """Answer as llama.cpp does whose model cannot see."""
    if "input_image" in await request.text():
        return web.json_response({"error": NO_EYES}, status=500)
    return await stream_in_pieces(request, stream_of(LATE_ENDS))


def listed_by_llama_cpp(tokens: int) -> dict[str, Any]:
    """Return what llama.cpp lists of its model (recorded, b10434)."""
    meta = {"vocab_type": 2, "n_ctx": tokens, "n_ctx_train": 8192, "ftype": "Q4_1"}
    model = {"id": "smollm2", "object": "model", "owned_by": "llamacpp", "meta": meta}
    return {"models": [{"name": "smollm2"}], "object": "list", "data": [model]}


def of_context(tokens: int, answer: Answerer) -> Answerer:
    """Answer as llama.cpp does that was started with a context of this size."""

    async def answer_or_list(request: web.Request) -> web.StreamResponse:
        if request.path == "/v1/models":
            return web.json_response(listed_by_llama_cpp(tokens))
        return await answer(request)

    return answer_or_list


def stream_of(name: str) -> bytes:
    return (FOLDER / f"{name}.sse").read_bytes()


def sending(*names: str, size: int | None = None) -> Answerer:
    """Answer with these streams in turn, whole or in chunks of this size."""
    left = list(names)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await stream_in_pieces(request, stream_of(left.pop(0)), size)

    return answer
