"""What goes wrong before there is a response."""

import json

from simulator.options import Options
from simulator.request import ValidRequest
from simulator.scenarios.chat import CHAT_SCENARIOS
from simulator.scenarios.scenario import (
    ComposeReply,
    HttpReply,
    Scenario,
    make_scenario,
)

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
OVERLOADED_TEXT = "Our servers are currently overloaded. Please try again later."

ERRORS_BY_STATUS = {
    408: (None, "invalid_request_error", "The request timed out."),
    409: (None, "invalid_request_error", "The request conflicts with another."),
    413: (None, "invalid_request_error", "The request is too large."),
    429: ("rate_limit_exceeded", "requests", BUSY_TEXT),
    500: ("server_error", "server_error", SERVER_ERROR_TEXT),
    502: ("server_error", "server_error", SERVER_ERROR_TEXT),
    503: ("server_is_overloaded", "service_unavailable_error", OVERLOADED_TEXT),
    504: ("server_error", "server_error", SERVER_ERROR_TEXT),
}
RETRY_HEADERS = {
    "retry-after": "Retry-After",
    "retry-after-ms": "Retry-After-Ms",
    "should-retry": "X-Should-Retry",
}


def build_http_error(status: int, options: Options) -> HttpReply:
    """Return the API's answer with this status."""
    code, type, text = ERRORS_BY_STATUS.get(
        status, (None, "api_error", f"Status {status}.")
    )
    headers = {
        header: options.text(option)
        for option, header in RETRY_HEADERS.items()
        if options.has(option)
    }
    return HttpReply(status, _build_error_body(code, type, text), headers=headers)


def _build_error_body(code: str | None, type: str, text: str) -> str:
    fields = {"message": text, "type": type, "param": None, "code": code}
    return json.dumps({"error": fields})


def _repeat_error(answer: HttpReply) -> ComposeReply:
    def compose(_request: ValidRequest, _options: Options) -> HttpReply:
        return answer

    return compose


def _build_quota_error(code: str, text: str) -> ComposeReply:
    return _repeat_error(
        HttpReply(429, _build_error_body(code, "insufficient_quota", text))
    )


HTTP_SCENARIOS: tuple[Scenario, ...] = (
    make_scenario(
        "html-error",
        "a gateway's page with status 502",
        _repeat_error(HttpReply(502, GATEWAY_PAGE, "text/html")),
    ),
    make_scenario(
        "html-200",
        "a page with status 200",
        _repeat_error(HttpReply(200, GATEWAY_PAGE, "text/html")),
    ),
    make_scenario(
        "json-error-200",
        "an error body with status 200",
        _repeat_error(
            HttpReply(
                200,
                _build_error_body("server_error", "server_error", SERVER_ERROR_TEXT),
            )
        ),
    ),
    make_scenario(
        "detail-error",
        "the error body of some gateways: detail",
        _repeat_error(
            HttpReply(400, json.dumps({"detail": "The gateway did not like that."}))
        ),
    ),
    make_scenario(
        "empty-200",
        "status 200 without a body",
        _repeat_error(HttpReply(200, "", "text/event-stream")),
    ),
    make_scenario(
        "redirect",
        "status 307 to the same address, which a client must not follow",
        _repeat_error(HttpReply(307, "", "text/plain", {"Location": "/v1/responses"})),
    ),
    make_scenario(
        "quota",
        "429 that no retry helps: no credit",
        _build_quota_error("insufficient_quota", QUOTA_TEXT),
    ),
    make_scenario(
        "spend-limit",
        "429 that no retry helps: a spend limit",
        _build_quota_error(
            "organization_spend_limit_exceeded", INSUFFICIENT_QUOTA_TEXT
        ),
    ),
    *(
        make_scenario(
            str(status),
            f"status {status} (times=N, retry-after=S)",
            *CHAT_SCENARIOS[0].replies,
            options=f"status={status}",
        )
        for status in ERRORS_BY_STATUS
    ),
)
