"""What goes wrong while the model speaks."""

from simulator.asked import Asked
from simulator.builders import message, reasoning
from simulator.disorder import delta_first, only_error, without_done
from simulator.options import Options
from simulator.scenario import (
    Reply,
    Scenario,
    error_event,
    failed,
    incomplete,
    reply,
    scenario,
)
from simulator.scenarios_chat import ANSWER, THOUGHTS

THINKING = reasoning(*THOUGHTS)
SAYING = message(ANSWER)
BROKE = "The server had an error processing your request. Sorry about that!"
OVERLOADED = "Our servers are currently overloaded. Please try again later."
LIMITED = (
    "Rate limit reached for organization org-simulator-1 on tokens per min (TPM): "
    "Limit 30000, Used 29000, Requested 4000. Please try again in 1.5s."
)


def _long(asked: Asked, options: Options) -> Reply:
    """Say as many words as were asked for, with a line break now and then."""
    del asked
    count = options.number("deltas") or 2000
    ends = ("\n\n" if place % 25 == 24 else " " for place in range(count))
    text = "".join(f"word{place}{end}" for place, end in enumerate(ends))
    return reply(THINKING, message(text.rstrip()))


def _big_line(asked: Asked, options: Options) -> Reply:
    """Say one word that is longer than most readers' line limit."""
    del asked
    word = "x" * (options.number("bytes") or 1_048_576)
    return reply(THINKING, message(f"A long word: {word} and its end."))


FAULT_SCENARIOS: tuple[Scenario, ...] = (
    scenario(
        "incomplete",
        "an answer that stops at max_output_tokens",
        reply(THINKING, SAYING, ending=incomplete()),
    ),
    scenario(
        "incomplete-thoughts",
        "a response that spends all its tokens on reasoning",
        reply(THINKING, ending=incomplete()),
    ),
    scenario(
        "filtered",
        "an answer that stops at the content filter",
        reply(THINKING, SAYING, ending=incomplete("content_filter")),
    ),
    scenario(
        "failed",
        "response.failed in the middle of the answer",
        reply(THINKING, SAYING, ending=failed("server_error", BROKE)),
    ),
    scenario(
        "failed-limit",
        "response.failed for a rate limit, before anything was said",
        reply(ending=failed("rate_limit_exceeded", LIMITED)),
    ),
    scenario(
        "error-nested",
        "an error event of the nested shape in the middle of the answer",
        reply(
            THINKING,
            SAYING,
            ending=error_event("server_error", BROKE, nested=True, type="server_error"),
        ),
    ),
    scenario(
        "error-flat",
        "an error event of the flat shape in the middle of the answer",
        reply(
            THINKING,
            SAYING,
            ending=error_event(
                "server_error", BROKE, nested=False, type="server_error"
            ),
        ),
    ),
    scenario(
        "error-first",
        "an error event and nothing else",
        reply(
            ending=error_event(
                "server_is_overloaded",
                OVERLOADED,
                nested=True,
                type="service_unavailable_error",
            ),
            disorder=only_error,
        ),
    ),
    scenario(
        "early-delta",
        "the first delta of each item before its output_item.added",
        reply(THINKING, SAYING, disorder=delta_first),
    ),
    scenario(
        "no-part-done",
        "no done events but those of whole items",
        reply(THINKING, SAYING, disorder=without_done),
    ),
    scenario(
        "cut",
        "a body that ends after some text, without a last event",
        reply(THINKING, message(ANSWER)),
        options="cut=60",
    ),
    scenario(
        "drop",
        "a connection that breaks in the middle of an event",
        reply(THINKING, message(ANSWER)),
        options="drop=60",
    ),
    scenario(
        "stall",
        "a stream that falls silent after some text",
        reply(THINKING, message(ANSWER)),
        options="stall=60",
    ),
    scenario(
        "keepalive",
        "keepalive events in between",
        reply(THINKING, SAYING),
        options="keepalive=5",
    ),
    scenario(
        "unknown-events",
        "events of types that nobody knows",
        reply(THINKING, SAYING),
        options="unknown",
    ),
    scenario("long", "thousands of deltas (deltas=N)", _long),
    scenario("slow", "a delta every 50 ms for a long time", _long, options="delay=50"),
    scenario("big-line", "a line of one megabyte (bytes=N)", _big_line),
)
