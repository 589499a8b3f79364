"""Calls of the pipe as the host makes them, and what came of them."""

import json
import re
from collections.abc import AsyncGenerator
from typing import Any

from pydantic import BaseModel
from starlette.responses import Response, StreamingResponse

from calls.sample import IDS, USER
from openai_responses.items import message_text
from owui_manifold.pipe import Pipe

Json = dict[str, Any]
NATIVE: Json = {"__user__": USER, "__metadata__": IDS}
PLAIN: Json = {"__user__": USER, "__metadata__": {}}
TEMPORARY: Json = {
    "__user__": USER,
    "__metadata__": {**IDS, "chat_id": "temporary:s-1"},
}
_CLOSING = ("Finished in ", "Failed after ", "Stopped after ")
_ERROR_ID = re.compile(r" \(Error id: ([0-9A-Z]{10})\)$")


class BrokenBody(dict[str, Any]):
    """A body that fails when its messages are asked for, and tells secrets."""

    def get(self, key: str, default: Any = None) -> Any:
        """Return a value, except the messages."""
        if key == "messages":
            raise RuntimeError("Bearer sk-simulator-1: my secret diary")
        return super().get(key, default)


def answering(message_id: str) -> Json:
    return {**NATIVE, "__metadata__": {**IDS, "message_id": message_id}}


async def chunks_of(pipe: Pipe, body: Json, **given: Any) -> list[Json]:
    """All that the pipe yields for a stream; programs get it as lines."""
    answer = await pipe.pipe(body, **given)
    if isinstance(answer, AsyncGenerator):
        return [chunk async for chunk in answer]
    *lines, end = await stream_lines_of(answer)
    assert end == "data: [DONE]\n\n"
    return [json.loads(line.removeprefix("data: ")) for line in lines]


async def stream_lines_of(answer: Any) -> list[str]:
    """The lines of a response, each as Open WebUI passes it on."""
    assert isinstance(answer, StreamingResponse)
    assert answer.media_type == "text/event-stream"
    return [str(line) async for line in answer.body_iterator]


async def result_of(pipe: Pipe, body: Json, **given: Any) -> Json:
    """What the pipe returns where no stream is wanted."""
    answer = await pipe.pipe({**body, "stream": False}, **given)
    if isinstance(answer, BaseModel):
        return body_of(_response_in(answer))
    assert isinstance(answer, dict)
    return answer


async def failure_of(pipe: Pipe, body: Json, **given: Any) -> Response:
    """The response with which a program is refused."""
    answer = await pipe.pipe({**body, "stream": False}, **given)
    return _response_in(answer)


async def refused_with(pipe: Pipe, body: Json, **given: Any) -> tuple[int, Json]:
    """The HTTP status and the error that a client without a stream gets."""
    body["stream"] = False
    response = _response_in(await pipe.pipe(body, **given))
    error: Json = body_of(response)["error"]
    return response.status_code, error


def _response_in(answer: Any) -> Response:
    """The response that Open WebUI unpacks."""
    assert isinstance(answer, BaseModel)
    response: Any = answer.model_dump()
    assert isinstance(response, Response)
    return response


def body_of(response: Response) -> Json:
    body: Json = json.loads(bytes(response.body))
    return body


def grown(chunks: list[Json]) -> str:
    wanted = "response.output_text.delta"
    return "".join(c["delta"] for c in chunks if c.get("type") == wanted)


def plain_text(chunks: list[Json]) -> str:
    deltas = [c["choices"][0]["delta"] for c in chunks if c.get("choices")]
    return "".join(delta.get("content", "") for delta in deltas)


def stored(chunks: list[Json]) -> str:
    """The text as the host gives it back in the next turn."""
    done = [c["item"] for c in chunks if c.get("type") == "response.output_item.done"]
    texts = [message_text(item) for item in done if item["type"] == "message"]
    return "\n".join(texts).strip()


def errors(chunks: list[Json]) -> list[str]:
    return [chunk["error"]["message"] for chunk in chunks if "error" in chunk]


def advice(chunks: list[Json]) -> str:
    """The last line of an answer that the model can continue; it is no error."""
    assert errors(chunks) == []
    return _status_lines(chunks)[-1]


def split_id(message: str) -> tuple[str, str]:
    match = _ERROR_ID.search(message)
    assert match, message
    return message[: match.start()], match[1]


def host_events(chunks: list[Json], *kinds: str) -> list[Json]:
    """What the host hands to the page: status lines, sources."""
    events = [chunk["event"] for chunk in chunks if "event" in chunk]
    return [event["data"] for event in events if event["type"] in kinds]


RESPONDED = "The model's server responded"
"""The line that ends a wait: it replaces the one that said what was awaited."""


def statuses(chunks: list[Json]) -> list[str]:
    """The status lines of an answer, without the last one and without ends of waits."""
    lines = _status_lines(chunks)
    return [
        line for line in lines if line != RESPONDED and not line.startswith(_CLOSING)
    ]


def closings(chunks: list[Json]) -> list[str]:
    return [line for line in _status_lines(chunks) if line.startswith(_CLOSING)]


def _status_lines(chunks: list[Json]) -> list[str]:
    shown = host_events(chunks, "status")
    return [line["description"] for line in shown if not line.get("hidden")]


def usages(chunks: list[Json]) -> list[Json]:
    return [chunk["usage"] for chunk in chunks if "usage" in chunk]
