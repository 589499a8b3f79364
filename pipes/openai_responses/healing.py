"""A refused request, changed so that it passes.

Five refusals have a cause that we can take away, each at the price of something less
(responses-api.md §0.9, §2.1, §4). They are recognised by the code, or by the words of
the server where it gives no code; a request is changed once for each cause, and only
while nothing has been shown.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from openai_responses.errors import ApiError
from openai_responses.hosted import is_hosted
from openai_responses.items import is_bound
from openai_responses.models import REASONING_EFFORTS
from openai_responses.request import ResponsesRequest

_ITEM_ERRORS = re.compile(
    r"provided without its required"
    r"|Items are not persisted when"
    r"|Duplicate item found with id"
    r"|Expected an ID that begins with"
    r"|encrypted content .{0,400} could not be verified",
    re.IGNORECASE | re.DOTALL,
)
_NOT_ALLOWED_TO_STREAM = re.compile(r"must be verified to stream", re.IGNORECASE)
_UNREACHED = re.compile(r"retrieving tool list from MCP server", re.IGNORECASE)
_NAMED_VALUES = re.compile(r"'([a-z]{1,10})'")


@dataclass(frozen=True, slots=True)
class Healed:
    """A changed request, and what was given up for it.

    `cause` is "reasoning", "summary", "stream", "effort" or "servers".
    """

    cause: str
    request: ResponsesRequest
    sentence: str


def healed(request: ResponsesRequest, error: ApiError) -> Healed | None:
    """Return a request without what `error` complains of, if that can be left out."""
    for cause, heal in _REMEDIES.items():
        changed = heal(request, error)
        if changed is not None:
            return Healed(cause, changed, _SENTENCES[cause])
    return None


def _without_reasoning(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    """Leave out all reasoning: one unreadable item does not say which."""
    by_code = error.code == "invalid_encrypted_content"
    if not by_code and not _ITEM_ERRORS.search(error.message):
        return None
    kept = [item for item in request.input if not is_bound(item)]
    # The ids of hosted items are ours, and the API demands them.
    without_ids = [
        item if is_hosted(item) else {k: v for k, v in item.items() if k != "id"}
        for item in kept
    ]
    if without_ids == request.input:
        return None
    return request.model_copy(update={"input": without_ids})


def _without_summary(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    reasoning = request.reasoning or {}
    if "summary" not in reasoning or "reasoning.summary" not in _about(error):
        return None
    rest = {key: value for key, value in reasoning.items() if key != "summary"}
    return request.model_copy(update={"reasoning": rest or None})


def _without_stream(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    refused = error.param == "stream" or _NOT_ALLOWED_TO_STREAM.search(error.message)
    if not request.stream or not refused:
        return None
    return request.model_copy(update={"stream": False})


def _with_nearest_effort(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    """Take the effort nearest to the refused one among those that the error names."""
    reasoning = request.reasoning or {}
    asked = reasoning.get("effort")
    if asked not in REASONING_EFFORTS or "reasoning.effort" not in _about(error):
        return None
    order = list(REASONING_EFFORTS)
    named = {word for word in _NAMED_VALUES.findall(error.message) if word in order}
    others = sorted(named - {asked}, key=order.index)
    if not others:
        return None
    place = order.index(asked)
    nearest = min(others, key=lambda effort: abs(order.index(effort) - place))
    return request.model_copy(update={"reasoning": {**reasoning, "effort": nearest}})


def _without_servers(
    request: ResponsesRequest, error: ApiError
) -> ResponsesRequest | None:
    """Leave out all remote servers: behind the one that is told of may be others."""
    tools = request.tools or []
    kept = [tool for tool in tools if tool.get("type") != "mcp"]
    if len(kept) == len(tools) or not _UNREACHED.search(error.message):
        return None
    choice = request.tool_choice if kept and request.tool_choice == "none" else None
    return request.model_copy(update={"tools": kept or None, "tool_choice": choice})


def _about(error: ApiError) -> str:
    """Return what an error is about: its parameter, else the words around it."""
    return error.param or error.message


_Remedy = Callable[[ResponsesRequest, ApiError], ResponsesRequest | None]

_REMEDIES: Mapping[str, _Remedy] = {
    "reasoning": _without_reasoning,
    "summary": _without_summary,
    "stream": _without_stream,
    "effort": _with_nearest_effort,
    "servers": _without_servers,
}

_SENTENCES: Mapping[str, str] = {
    "reasoning": "The server could not read earlier reasoning of this chat: "
    "answering without it.",
    "summary": "This organisation gets no reasoning summaries: answering without.",
    "stream": "This organisation may not stream: the answer comes in one piece.",
    "effort": "The model does not have this effort: answering with the nearest one.",
    "servers": "A remote MCP server cannot be reached: answering without such tools.",
}
