"""A failure as a response of its own, in the one form that both servers pass on as it is.

Open WebUI and the Pipelines server send a dict with the status 200. What `model_dump` of
a model of pydantic returns they pass on: a response keeps its status and its headers
(docs/reference/open-webui.md, "Answers to programs"; docs/reference/pipelines-server.md,
"Forms of an answer").
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from openai_responses.loop.events import RunDone
from owui_chat.render.chunks import Chunk, whole_characters
from owui_chat.render.client_errors import seconds_to_wait

NOT_AGAIN = "x-should-retry"
"""The header that says whether to ask again, to clients of OpenAI and Anthropic."""


class _DumpedResponse(BaseModel):
    """A response that the server unpacks from here."""

    response: Any

    def model_dump(self, **_: Any) -> Any:
        return self.response


def failure_headers(ended: RunDone) -> dict[str, str]:
    """Return the headers by which a program decides whether and when it asks again."""
    headers: dict[str, str] = {}
    seconds = seconds_to_wait(ended)
    if seconds is not None:
        headers["Retry-After"] = str(seconds)
    if ended.output:
        # Clients of OpenAI and Anthropic repeat 429 and 5xx by themselves, unless this
        # header says no. This answer has cost money, and its tools have run.
        headers[NOT_AGAIN] = "false"
    return headers


def failed_answer(
    response: Callable[..., Any] | None,
    result: Chunk,
    status: int,
    headers: Mapping[str, str],
) -> Any:
    """Return a result with the status of a failure, as a `response` of the server.

    A server without such responses gets the result alone.
    """
    if response is None:
        return result
    body = json.dumps(whole_characters(result))
    sent = {"Content-Type": "application/json", **headers}
    return _DumpedResponse(response=response(body, status, sent))
