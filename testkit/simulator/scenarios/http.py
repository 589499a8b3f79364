"""Replies without a response: errors as the status of the answer."""

import json
from typing import Any

from simulator.options import Options
from simulator.refusals import OVERLOADED_TEXT
from simulator.request import ValidRequest
from simulator.scenarios.chat import CHAT
from simulator.scenarios.faults import (
    CYBER_TEXT,
    FILTERED_TEXT,
    MISALIGNED_TEXT,
    MISALIGNMENT,
    TOO_LARGE_TEXT,
)
from simulator.scenarios.scenario import HttpReply, Reply, Scenario, make_scenario

GATEWAY_PAGE = """\
<html><head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center></body></html>
"""
QUOTA_TEXT = (
    "You exceeded your current quota, please check your plan and billing details. For "
    "more information on this error, read the docs: "
    "https://platform.openai.com/docs/guides/error-codes/api-errors."
)
INSUFFICIENT_QUOTA_TEXT = "Your organization has reached its spend limit."
BUSY_TEXT = "Rate limit reached for requests. Please try again in 1s."
SERVER_ERROR_TEXT = (
    "The server had an error while processing your request. Sorry about that!"
)
FLEX_TEXT = "Flex processing is temporarily unavailable. Please try again later."
XAI_KEY_TEXT = (
    "Incorrect API key provided: xa***23. You can obtain an API key from "
    "https://console.x.ai."
)
INVALID = "invalid_request_error"
SERVER_ERROR = ("server_error", "server_error", SERVER_ERROR_TEXT)

ERRORS_BY_STATUS = {
    408: (None, INVALID, "The request timed out."),
    409: (None, INVALID, "The request conflicts with another."),
    413: (None, INVALID, "The request is too large."),
    429: ("rate_limit_exceeded", "requests", BUSY_TEXT),
    500: SERVER_ERROR,
    502: SERVER_ERROR,
    503: ("server_is_overloaded", "service_unavailable_error", OVERLOADED_TEXT),
    504: SERVER_ERROR,
}
RETRY_HEADERS = {
    "retry-after": "Retry-After",
    "retry-after-ms": "Retry-After-Ms",
    "should-retry": "X-Should-Retry",
}


def build_http_error(status: int, options: Options) -> HttpReply:
    """Return the API's error with this status, and the headers that options ask for."""
    unknown = (None, "api_error", f"Status {status}.")
    headers = {
        header: options.text(option)
        for option, header in RETRY_HEADERS.items()
        if options.has(option)
    }
    body = _refuse(status, *ERRORS_BY_STATUS.get(status, unknown)).body
    return HttpReply(status, body, headers=headers)


def _refuse(
    status: int, code: str | None, type: str | None, text: str, /, **more: Any
) -> HttpReply:
    fields = {"message": text, "type": type, "param": None, "code": code, **more}
    return HttpReply(status, json.dumps({"error": fields}))


def _refuse_flex(request: ValidRequest, options: Options) -> Reply | HttpReply:
    """Refuse requests of the flex tier; answer all others."""
    if request.body.get("service_tier") == "flex":
        return _refuse(429, "flex_unavailable", INVALID, FLEX_TEXT)
    return CHAT.reply_to(request, options)


HTTP_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "html-error",
        "a gateway's page with status 502",
        HttpReply(502, GATEWAY_PAGE, "text/html"),
    ),
    make_scenario(
        "html-200", "a page with status 200", HttpReply(200, GATEWAY_PAGE, "text/html")
    ),
    make_scenario(
        "json-error-200", "an error body with status 200", _refuse(200, *SERVER_ERROR)
    ),
    make_scenario(
        "detail-error",
        "the error body of some gateways: detail",
        HttpReply(400, json.dumps({"detail": "The gateway did not like that."})),
    ),
    make_scenario(
        "empty-200",
        "status 200 without a body",
        HttpReply(200, "", "text/event-stream"),
    ),
    make_scenario(
        "quota",
        "429 for no credit: a retry does not help",
        _refuse(429, "insufficient_quota", "insufficient_quota", QUOTA_TEXT),
    ),
    make_scenario(
        "spend-limit",
        "429 for a spend limit: a retry does not help",
        _refuse(
            429,
            "organization_spend_limit_exceeded",
            "insufficient_quota",
            INSUFFICIENT_QUOTA_TEXT,
        ),
    ),
    make_scenario(
        "misaligned-first",
        "403 of the safety monitoring, with its explanation",
        _refuse(
            403,
            "misalignment_policy_violation",
            INVALID,
            MISALIGNED_TEXT,
            misalignment=MISALIGNMENT,
        ),
    ),
    *(
        make_scenario(
            f"cyber-{status}",
            f"status {status} for the cyber policy",
            _refuse(status, "cyber_policy", INVALID, CYBER_TEXT),
        )
        for status in (400, 403)
    ),
    make_scenario("flex-unavailable", "429 for the flex tier only", _refuse_flex),
    make_scenario(
        "too-large-first",
        "429 for a request larger than the limit: a retry does not help",
        _refuse(429, "rate_limit_exceeded", "tokens", TOO_LARGE_TEXT),
    ),
    make_scenario(
        "prompt-filtered",
        "400 of Azure's filter, with the parameter prompt",
        _refuse(400, "content_filter", None, FILTERED_TEXT, param="prompt", status=400),
    ),
    make_scenario(
        "xai-key",
        "400 that xAI sends for a wrong key",
        HttpReply(400, json.dumps({"code": "invalid-argument", "error": XAI_KEY_TEXT})),
    ),
    *(
        make_scenario(
            str(status),
            f"status {status} (times=N, retry-after=S)",
            *CHAT.replies,
            options=f"status={status}",
        )
        for status in ERRORS_BY_STATUS
    ),
)
