"""What goes wrong before there is a response."""

import json

from simulator.asked import Asked
from simulator.options import Options
from simulator.scenario import Compose, HttpReply, Scenario, scenario
from simulator.scenarios_chat import CHAT_SCENARIOS

PAGE = """\
<html><head><title>502 Bad Gateway</title></head>
<body><center><h1>502 Bad Gateway</h1></center></body></html>
"""
QUOTA = (
    "You exceeded your current quota, please check your plan and billing details. For "
    "more information on this error, read the docs: "
    "https://platform.openai.com/docs/guides/error-codes/api-errors."
)
SPENT = "Your organization has reached its spend limit."
BUSY = "Rate limit reached for requests. Please try again in 1s."
BROKE = "The server had an error while processing your request. Sorry about that!"
OVERLOADED = "Our servers are currently overloaded. Please try again later."

ERRORS = {
    408: (None, "invalid_request_error", "The request timed out."),
    409: (None, "invalid_request_error", "The request conflicts with another."),
    413: (None, "invalid_request_error", "The request is too large."),
    429: ("rate_limit_exceeded", "requests", BUSY),
    500: ("server_error", "server_error", BROKE),
    502: ("server_error", "server_error", BROKE),
    503: ("server_is_overloaded", "service_unavailable_error", OVERLOADED),
    504: ("server_error", "server_error", BROKE),
}
RETRY_HEADERS = {
    "retry-after": "Retry-After",
    "retry-after-ms": "Retry-After-Ms",
    "should-retry": "X-Should-Retry",
}


def http_error(status: int, options: Options) -> HttpReply:
    """Return the API's answer with this status."""
    code, type, text = ERRORS.get(status, (None, "api_error", f"Status {status}."))
    headers = {
        header: options.text(option)
        for option, header in RETRY_HEADERS.items()
        if options.has(option)
    }
    return HttpReply(status, _body(code, type, text), headers=headers)


def _body(code: str | None, type: str, text: str) -> str:
    fields = {"message": text, "type": type, "param": None, "code": code}
    return json.dumps({"error": fields})


def _always(answer: HttpReply) -> Compose:
    def compose(asked: Asked, options: Options) -> HttpReply:
        del asked, options
        return answer

    return compose


def _quota(code: str, text: str) -> Compose:
    return _always(HttpReply(429, _body(code, "insufficient_quota", text)))


HTTP_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "html-error",
        "a gateway's page with status 502",
        _always(HttpReply(502, PAGE, "text/html")),
    ),
    scenario(
        "html-200", "a page with status 200", _always(HttpReply(200, PAGE, "text/html"))
    ),
    scenario(
        "json-error-200",
        "an error body with status 200",
        _always(HttpReply(200, _body("server_error", "server_error", BROKE))),
    ),
    scenario(
        "detail-error",
        "the error body of some gateways: detail",
        _always(
            HttpReply(400, json.dumps({"detail": "The gateway did not like that."}))
        ),
    ),
    scenario(
        "empty-200",
        "status 200 without a body",
        _always(HttpReply(200, "", "text/event-stream")),
    ),
    scenario(
        "quota",
        "429 that no retry helps: no credit",
        _quota("insufficient_quota", QUOTA),
    ),
    scenario(
        "spend-limit",
        "429 that no retry helps: a spend limit",
        _quota("organization_spend_limit_exceeded", SPENT),
    ),
    *(
        scenario(
            str(status),
            f"status {status} (times=N, retry-after=S)",
            *CHAT_SCENARIOS[0].replies,
            options=f"status={status}",
        )
        for status in ERRORS
    ),
)
