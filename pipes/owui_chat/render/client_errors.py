"""A failure as programs over plain HTTP get it: OpenAI's form, and a status of HTTP.

The status is that of the model's server where there is one, so that a client waits, or
gives up, as it would with OpenAI. Where nothing was sent it says who can change that:
the caller (400), or only an administrator (403, 500).

The error of a stream repeats it, and the seconds to wait: Open WebUI sends the head of
its response before it asks the pipe (docs/reference/open-webui.md, "Answers to programs").
"""

import math
from collections.abc import Mapping
from http import HTTPStatus

from openai_responses.causes import (
    FLEX_UNAVAILABLE,
    IMAGE_CODES,
    NO_CREDIT_CODES,
    REQUEST_TOO_LARGE,
    SAFETY_STOPS,
    WRONG_KEY,
)
from openai_responses.endings import api_word, ending_of_exception
from openai_responses.errors import (
    ApiError,
    InvalidParameter,
    InvalidRequest,
    Remedy,
    ResponsesError,
)
from openai_responses.loop.events import RunDone, Trace
from owui_chat.render.chunks import Chunk

_STATUS_OF_CODES: Mapping[str, int] = {
    **dict.fromkeys(SAFETY_STOPS | IMAGE_CODES, HTTPStatus.BAD_REQUEST),
    **dict.fromkeys(NO_CREDIT_CODES, HTTPStatus.TOO_MANY_REQUESTS),
    "context_length_exceeded": HTTPStatus.BAD_REQUEST,
    WRONG_KEY: HTTPStatus.UNAUTHORIZED,
    "model_not_found": HTTPStatus.NOT_FOUND,
    FLEX_UNAVAILABLE: HTTPStatus.TOO_MANY_REQUESTS,
    REQUEST_TOO_LARGE: HTTPStatus.TOO_MANY_REQUESTS,
    "rate_limit_exceeded": HTTPStatus.TOO_MANY_REQUESTS,
    "slow_down": HTTPStatus.TOO_MANY_REQUESTS,
    "server_is_overloaded": HTTPStatus.SERVICE_UNAVAILABLE,
}
"""The statuses that OpenAI sends with these codes, where a stream brought them."""

_STATUS_OF_KINDS: Mapping[str, int] = {
    "failed": HTTPStatus.INTERNAL_SERVER_ERROR,
    "error": HTTPStatus.INTERNAL_SERVER_ERROR,
    "invalid": HTTPStatus.INTERNAL_SERVER_ERROR,
    "first_event_timeout": HTTPStatus.GATEWAY_TIMEOUT,
    "idle_timeout": HTTPStatus.GATEWAY_TIMEOUT,
    "total_timeout": HTTPStatus.GATEWAY_TIMEOUT,
}
"""By the kind of an ending; that of all others is 502.

`invalid`: during a run only settings of the endpoint are found to be unusable.
"""

_STATUS_OF_REMEDIES: Mapping[Remedy, int] = {
    "request": HTTPStatus.BAD_REQUEST,
    "rule": HTTPStatus.FORBIDDEN,
    "setup": HTTPStatus.INTERNAL_SERVER_ERROR,
}
_ERROR_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    429: "rate_limit_error",
}


def ending_status(ended: RunDone) -> int:
    """Return the status of a run that failed."""
    ending = ended.ending
    status = ended.trace.status or 0
    if ending.kind in ("refused", "invalid") and _is_failure(status):
        return status
    known = ended.trace.error.status or _STATUS_OF_CODES.get(ending.code or "", 0)
    return known or _STATUS_OF_KINDS.get(ending.kind, HTTPStatus.BAD_GATEWAY)


def exception_status(error: Exception) -> int:
    """Return the status of a request that an exception stopped before its run."""
    if isinstance(error, InvalidRequest):
        return _STATUS_OF_REMEDIES[error.remedy]
    if isinstance(error, ResponsesError):
        status = error.status or 0
        return status if _is_failure(status) else HTTPStatus.BAD_GATEWAY
    return HTTPStatus.INTERNAL_SERVER_ERROR


def refused_run(error: ResponsesError) -> RunDone:
    """Return the end of a run that an exception stopped before its first request."""
    ending = ending_of_exception(error, has_begun=False)
    trace = Trace(status=exception_status(error), error=_api_error(error))
    return RunDone(ending, trace=trace)


def _api_error(error: Exception) -> ApiError:
    """Return an exception as the API tells an error, which is by its parameter."""
    return ApiError(param=error.param if isinstance(error, InvalidParameter) else None)


def _is_failure(status: int) -> bool:
    return 400 <= status < 600


def ending_error(ended: RunDone) -> Chunk:
    """Return the chunk of a run that failed."""
    ending = ended.ending
    error = ended.trace.error
    if not error.code and ending.code != error.type:
        error = error._replace(code=ending.code)  # what the server's words mean
    chunk = client_error(ending.message, ending_status(ended), error)
    seconds = seconds_to_wait(ended)
    if seconds is not None:
        chunk["error"]["retry_after"] = seconds
    return chunk


def seconds_to_wait(ended: RunDone) -> int | None:
    """Return after how many seconds the server wants to be asked again, if it says so."""
    seconds = ended.trace.retry_after
    return None if seconds is None else math.ceil(seconds)


def exception_error(message: str, error: Exception) -> Chunk:
    """Return the chunk of a request that an exception stopped."""
    return client_error(message, exception_status(error), _api_error(error))


def client_error(message: str, status: int, error: ApiError) -> Chunk:
    """Return the chunk of a failure; of the server's `error` only words of the API."""
    by_status = _ERROR_TYPES.get(status, "invalid_request_error")
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        by_status = "server_error"
    return {
        "error": {
            "message": message,
            "type": api_word(error.type) or by_status,
            "param": api_word(error.param),
            "code": api_word(error.code),
            "status": int(status),
        }
    }
