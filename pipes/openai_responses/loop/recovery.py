"""What to do after a refusal: wait and send again, or change the request.

Requests are sent again as OpenAI's Python client does it
(docs/reference/responses-api.md, "Retries"), except after an exhausted quota, which
retrying cannot restore.

Five refusals have a cause that can be left out of the request, with some loss
(docs/reference/responses-api.md, "Refusals of input items", "Sampling and effort" and
"Errors"). They are recognised by the code, else by the server's words. A request is
changed once for each cause, and only before anything was shown.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from openai_responses.errors import ApiError, Failure
from openai_responses.items import is_encrypted, is_hosted
from openai_responses.loop.events import Status
from openai_responses.models.resolve import REASONING_EFFORTS
from openai_responses.requests.build import ResponsesRequest

_QUOTA_CODES = frozenset(
    {
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "project_usage_limit_exceeded",
    }
)
"""Codes and types of a 429 that means an exhausted quota, not a temporary limit."""

_RETRIED_STATUS = frozenset({408, 409, 429})
_RETRIED_CODES = frozenset(
    {"rate_limit_exceeded", "server_error", "server_is_overloaded", "slow_down"}
)
_FIRST_WAIT, _LONGEST_WAIT = 0.5, 8.0


class RetryPolicy(NamedTuple):
    """How often to retry, and the longest wait in seconds."""

    max_retries: int = 1
    max_wait: float = 60.0


def retry_wait(
    policy: RetryPolicy, attempt: int, failure: Failure, jitter: float
) -> float | None:
    """Return the seconds before the next attempt; None if there is none.

    `attempt` counts from 0, `jitter` is between 0 and 1.
    """
    if attempt >= policy.max_retries or not _is_retried(failure):
        return None
    backoff = min(_FIRST_WAIT * 2**attempt, _LONGEST_WAIT) * (1 - 0.25 * jitter)
    wait = backoff if failure.retry_after is None else failure.retry_after
    return wait if wait <= policy.max_wait else None


def _is_retried(failure: Failure) -> bool:
    words = {failure.error.code, failure.error.type}
    suffixes = ("_spend_limit_exceeded", "_usage_limit_exceeded")
    if words & _QUOTA_CODES or (failure.error.code or "").endswith(suffixes):
        return False
    if failure.should_retry is not None:
        return failure.should_retry
    if failure.status in (None, 200):
        return words == {None} or bool(words & _RETRIED_CODES)
    return failure.status in _RETRIED_STATUS or failure.status >= 500


_ITEM_ERRORS = re.compile(
    r"provided without its required"
    r"|Items are not persisted when"
    r"|Duplicate item found with id"
    r"|Expected an ID that begins with"
    r"|encrypted content .{0,400} could not be verified",
    re.IGNORECASE | re.DOTALL,
)
_NAMED_VALUES = re.compile(r"'([a-z]{1,10})'")


class _Fallback(NamedTuple):
    """A changed request, and what was given up for it."""

    request: ResponsesRequest
    status: Status


def find_fallback(request: ResponsesRequest, error: ApiError) -> _Fallback | None:
    """Return a request without the cause of `error`, if it can be left out."""
    for cause, (change, sentence) in _FALLBACKS.items():
        changed = change(request, error)
        if changed is not None:
            # The server names the parameter itself; its words may quote the user.
            lasting = error.param in ("reasoning.summary", "stream")
            status = Status(sentence, cause, lasting)
            return _Fallback(request.model_copy(update=changed), status)
    return None


_Fields = dict[str, Any]


def _without_reasoning(request: ResponsesRequest, error: ApiError) -> _Fields | None:
    """Remove all reasoning, because the error does not say which item is unreadable."""
    by_code = error.code == "invalid_encrypted_content"
    if not by_code and not _ITEM_ERRORS.search(error.message):
        return None
    # The ids of hosted items are our own, and the API requires them.
    items = [
        item if is_hosted(item) else {k: v for k, v in item.items() if k != "id"}
        for item in request.input
        if not is_encrypted(item)
    ]
    return None if items == request.input else {"input": items}


def drop_summary(reasoning: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the `reasoning` of a request that asks for no summary."""
    kept = {key: one for key, one in (reasoning or {}).items() if key != "summary"}
    return kept or None


def _without_summary(request: ResponsesRequest, error: ApiError) -> _Fields | None:
    asks = "summary" in (request.reasoning or {})
    refused = "reasoning.summary" in _subject(error)
    return {"reasoning": drop_summary(request.reasoning)} if asks and refused else None


def _without_stream(request: ResponsesRequest, error: ApiError) -> _Fields | None:
    refused = error.param == "stream" or _says(error, "must be verified to stream")
    return {"stream": False} if request.stream and refused else None


def _with_nearest_effort(request: ResponsesRequest, error: ApiError) -> _Fields | None:
    reasoning = request.reasoning or {}
    asked = reasoning.get("effort")
    if asked not in REASONING_EFFORTS or "reasoning.effort" not in _subject(error):
        return None
    order = REASONING_EFFORTS.index
    named = set(_NAMED_VALUES.findall(error.message)) & {*REASONING_EFFORTS} - {asked}
    if not named:
        return None
    nearest = min(named, key=lambda one: (abs(order(one) - order(asked)), order(one)))
    return {"reasoning": {**reasoning, "effort": nearest}}


def _without_servers(request: ResponsesRequest, error: ApiError) -> _Fields | None:
    """Remove all remote servers: the error names one, but others may fail as well."""
    tools = request.tools or []
    kept = [tool for tool in tools if tool.get("type") != "mcp"]
    if len(kept) == len(tools) or not _says(
        error, "retrieving tool list from MCP server"
    ):
        return None
    choice = request.tool_choice if kept and request.tool_choice == "none" else None
    return {"tools": kept or None, "tool_choice": choice}


def _says(error: ApiError, words: str) -> bool:
    return words.lower() in error.message.lower()


def _subject(error: ApiError) -> str:
    return error.param or error.message


_Change = Callable[[ResponsesRequest, ApiError], _Fields | None]

_FALLBACKS: Mapping[str, tuple[_Change, str]] = {
    "reasoning": (
        _without_reasoning,
        "The server could not read earlier reasoning of this chat: "
        "answering without it.",
    ),
    "summary": (
        _without_summary,
        "This organisation gets no reasoning summaries: answering without.",
    ),
    "stream": (
        _without_stream,
        "This organisation may not stream: the answer comes in one piece.",
    ),
    "effort": (
        _with_nearest_effort,
        "The model does not have this effort: answering with the nearest one.",
    ),
    "servers": (
        _without_servers,
        "A remote MCP server cannot be reached: answering without such tools.",
    ),
}
