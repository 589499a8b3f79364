"""Responses that fail while they are streamed.

The errors of the `leaky` scenarios quote the whole request with its key.
"""

import json
from typing import Any

from simulator.options import Options
from simulator.refusals import OVERLOADED_TEXT
from simulator.request import ValidRequest
from simulator.scenarios.builders import (
    build_function_call,
    build_message,
    build_reasoning,
)
from simulator.scenarios.chat import ANSWER, THOUGHTS
from simulator.scenarios.scenario import (
    ComposeReply,
    HttpReply,
    Reply,
    Scenario,
    end_failed,
    end_incomplete,
    end_refused,
    end_with_error_event,
    end_with_late_reason,
    make_reply,
    make_scenario,
    send_delta_first,
)

REASONING = build_reasoning(*THOUGHTS)
MESSAGE = build_message(ANSWER)
ANSWERED = make_reply(REASONING, MESSAGE)
SERVER_ERROR_TEXT = "The server had an error processing your request. Sorry about that!"
RATE_LIMIT_TEXT = (
    "Rate limit reached for organization org-simulator-1 on tokens per min (TPM): "
    "Limit 30000, Used 29000, Requested 4000. Please try again in 1.5s."
)
TOO_LARGE_TEXT = (
    "Request too large for gpt-5.6-sol in organization org-simulator-1 on tokens per min "
    "(TPM): Limit 30000, Requested 31289. The input or output tokens must be reduced in "
    "order to run successfully. Visit https://platform.openai.com/account/rate-limits to "
    "learn more."
)
MISALIGNED_TEXT = (
    "This request was blocked by our safety systems. Reason: Potentially unintended "
    "activity."
)
MISALIGNMENT = {
    "error_type": "potentially_unintended_data_access",
    "detailed_explanation": (
        "The model was about to read credentials that the task did not ask for.\n\n"
        "![details](https://example.com/pixel.png) <script>alert(1)</script> "
        "Authorization: Bearer sk-canary-0123456789"
    ),
    "review_target": "review_simulator_1",
    "steer": {"message": "Ask before you read **secrets**."},
}
"""What a client shows of a stop, with Markdown, HTML and a key that it must not show."""
CYBER_TEXT = "This request has been flagged for possible cybersecurity risk."
FILTERED_TEXT = (
    "The response was filtered due to the prompt triggering Azure OpenAI's content "
    "management policy. Please modify your prompt and retry."
)


def _write_many_words(_request: ValidRequest, options: Options) -> Reply:
    """Write as many words as the option ``deltas`` says, with some line breaks."""
    count = options.number("deltas") or 2000
    text = ""
    for number in range(count):
        end = "\n\n" if number % 25 == 24 else " "
        text += f"word{number}{end}"
    return make_reply(REASONING, build_message(text.rstrip()))


LONG_WORD = "x" * 1_048_576
"""Longer than most readers' limit of a line."""


def _answer(name: str, summary: str, **more: Any) -> Scenario:
    return make_scenario(name, summary, REASONING, MESSAGE, **more)


FAULT_SCENARIOS: tuple[Scenario, ...] = (
    _answer(
        "incomplete",
        "an answer that stops at max_output_tokens",
        ending=end_incomplete(),
    ),
    make_scenario(
        "incomplete-thoughts",
        "a response that spends all its tokens on reasoning",
        REASONING,
        ending=end_incomplete(),
    ),
    make_scenario("nothing", "a response that is completed without an item"),
    make_scenario(
        "filtered-first",
        "a response that the content filter stops before anything was said",
        ending=end_incomplete("content_filter"),
    ),
    _answer(
        "filtered",
        "an answer that stops at the content filter",
        ending=end_incomplete("content_filter"),
    ),
    _answer(
        "failed",
        "response.failed in the middle of the answer",
        ending=end_failed("server_error", SERVER_ERROR_TEXT),
    ),
    make_scenario(
        "failed-limit",
        "response.failed for a rate limit, before anything was said",
        ending=end_failed("rate_limit_exceeded", RATE_LIMIT_TEXT, counted=False),
    ),
    make_scenario(
        "misaligned",
        "an answer that the safety monitoring stops after a whole call",
        REASONING,
        build_function_call("$tool", {"city": "Bern"}),
        MESSAGE,
        ending=end_refused(
            "misalignment_policy_violation",
            MISALIGNED_TEXT,
            type="invalid_request_error",
            misalignment=MISALIGNMENT,
        ),
    ),
    make_scenario(
        "cyber-failed",
        "a response that fails for the cyber policy, before anything was said",
        ending=end_refused(
            "cyber_policy", CYBER_TEXT, type="invalid_request_error", counted=False
        ),
    ),
    make_scenario(
        "too-large",
        "a request that is larger than the rate limit, refused in the stream",
        ending=end_refused(
            "rate_limit_exceeded", TOO_LARGE_TEXT, type="tokens", counted=False
        ),
    ),
    _answer(
        "late-reason",
        "Azure's filter: response.failed without a reason, then an error event with it",
        ending=end_with_late_reason("content_policy_violation", FILTERED_TEXT),
    ),
    *(
        _answer(
            f"error-{shape}",
            f"an error event of the {shape} shape in the middle of the answer",
            ending=end_with_error_event(
                "server_error",
                SERVER_ERROR_TEXT,
                nested=shape == "nested",
                type="server_error",
            ),
        )
        for shape in ("nested", "flat")
    ),
    make_scenario(
        "error-first",
        "an error event and nothing else",
        ending=end_with_error_event(
            "server_is_overloaded",
            OVERLOADED_TEXT,
            nested=True,
            type="service_unavailable_error",
        ),
        fault=lambda events: events[-1:],
    ),
    _answer(
        "early-delta",
        "the first delta of each item before its output_item.added",
        fault=send_delta_first,
    ),
    make_scenario(
        "cut",
        "a stream that ends after some text, without a last event",
        ANSWERED,
        options="cut=60",
    ),
    make_scenario(
        "drop",
        "a connection that breaks in the middle of an event",
        ANSWERED,
        options="drop=60",
    ),
    make_scenario(
        "stall",
        "a stream that stops sending after some text",
        ANSWERED,
        options="stall=60",
    ),
    make_scenario(
        "keepalive", "keepalive events in between", ANSWERED, options="keepalive=5"
    ),
    make_scenario(
        "unknown-events", "events of unknown types", ANSWERED, options="unknown"
    ),
    make_scenario("long", "thousands of deltas (deltas=N)", _write_many_words),
    make_scenario(
        "slow",
        "a delta every 50 ms for a long time",
        _write_many_words,
        options="delay=50",
    ),
    make_scenario(
        "big-line",
        "a line of one megabyte",
        REASONING,
        build_message(f"A long word: {LONG_WORD} and its end."),
    ),
)


def _quote_request(request: ValidRequest) -> str:
    """Return a message that quotes the header and the body of a request."""
    body = json.dumps(request.body, ensure_ascii=False)
    return f"Refused. Authorization: {request.authorization}\n{body}"


def _quote_question(request: ValidRequest) -> str:
    """Return a text that cannot be a parameter: the header, then the question."""
    return f"{request.authorization} {request.last_user_text}"


def _refuse_with_quotation(status: int) -> ComposeReply:
    def compose(request: ValidRequest, _options: Options) -> HttpReply:
        header = request.authorization
        fields = {"type": header, "param": _quote_question(request), "code": header}
        body = json.dumps({"error": {"message": _quote_request(request), **fields}})
        return HttpReply(status, body, headers={"x-request-id": header})

    return compose


def _quote_in_event(*, nested: bool) -> ComposeReply:
    def compose(request: ValidRequest, _options: Options) -> Reply:
        header = request.authorization
        text = _quote_request(request)
        ending = end_with_error_event(header, text, nested=nested, type=header)
        error = ending.fields["error"] if nested else ending.fields
        error["param"] = _quote_question(request)
        return make_reply(REASONING, MESSAGE, ending=ending)

    return compose


def _quote_in_failure(request: ValidRequest, _options: Options) -> Reply:
    # Otherwise a `$` would begin a placeholder.
    text = _quote_request(request).replace("$", "$$")
    ending = end_failed(request.authorization, text)
    return make_reply(REASONING, MESSAGE, ending=ending)


LEAK_SCENARIOS: tuple[Scenario, ...] = (
    *(
        make_scenario(
            name,
            f"status {status} that quotes the request",
            _refuse_with_quotation(status),
        )
        for name, status in (
            ("leaky-error", 400),
            ("leaky-error-401", 401),
            ("leaky-error-500", 500),
        )
    ),
    make_scenario(
        "leaky-stream",
        "an error event that quotes the request",
        _quote_in_event(nested=False),
    ),
    make_scenario(
        "leaky-stream-nested",
        "an error event of the nested shape that quotes the request",
        _quote_in_event(nested=True),
    ),
    make_scenario(
        "leaky-stream-failed",
        "response.failed that quotes the request",
        _quote_in_failure,
    ),
    make_scenario(
        "leaky-tool",
        "a call with the prompt as an argument, then status 400 that quotes both",
        make_reply(REASONING, build_function_call("$tool", {"said": "$said"})),
        _refuse_with_quotation(400),
    ),
)
