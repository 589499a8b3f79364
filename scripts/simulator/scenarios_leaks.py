"""Errors that quote the whole request, its key included.

OpenAI masks keys in its errors; gateways and proxies quote what they were sent. So each
text of these errors holds the Authorization header; the param holds what was said last,
too, and the message holds the whole body.
"""

import json

from simulator.asked import Asked
from simulator.builders import function_call, message, reasoning
from simulator.options import Options
from simulator.scenario import (
    Compose,
    Ending,
    HttpReply,
    Reply,
    Scenario,
    error_event,
    failed,
    reply,
    scenario,
)
from simulator.scenarios_chat import ANSWER, THOUGHTS

THINKING = reasoning(*THOUGHTS)
SAYING = message(ANSWER)


def quoted(asked: Asked) -> str:
    """Return a message that quotes the header and the body of a request."""
    body = json.dumps(asked.body, ensure_ascii=False)
    return f"Refused. Authorization: {asked.authorization}\n{body}"


def _word_of(asked: Asked) -> str:
    """Return what is no name of a parameter: the header, then what was said."""
    return f"{asked.authorization} {asked.said}"


def _refusing(status: int) -> Compose:
    def compose(asked: Asked, options: Options) -> HttpReply:
        del options
        header = asked.authorization
        fields = {"type": header, "param": _word_of(asked), "code": header}
        body = json.dumps({"error": {"message": quoted(asked), **fields}})
        return HttpReply(status, body, headers={"x-request-id": header})

    return compose


def _event_of(asked: Asked, *, nested: bool) -> Ending:
    header = asked.authorization
    ending = error_event(header, quoted(asked), nested=nested, type=header)
    inner = ending.fields["error"] if nested else ending.fields
    inner["param"] = _word_of(asked)
    return ending


def _stream(asked: Asked, options: Options) -> Reply:
    del options
    return reply(THINKING, SAYING, ending=_event_of(asked, nested=False))


def _stream_nested(asked: Asked, options: Options) -> Reply:
    del options
    return reply(THINKING, SAYING, ending=_event_of(asked, nested=True))


def _failed(asked: Asked, options: Options) -> Reply:
    del options
    # Else a `$` would be taken for a word that a transcript leaves open.
    text = quoted(asked).replace("$", "$$")
    ending = failed(asked.authorization, text)
    return reply(THINKING, SAYING, ending=ending)


LEAK_SCENARIOS: tuple[Scenario, ...] = (
    scenario("leaky-error", "status 400 that quotes the request", _refusing(400)),
    scenario("leaky-error-401", "status 401 that quotes the request", _refusing(401)),
    scenario("leaky-error-500", "status 500 that quotes the request", _refusing(500)),
    scenario("leaky-stream", "an error event that quotes the request", _stream),
    scenario(
        "leaky-stream-nested",
        "an error event of the nested shape that quotes the request",
        _stream_nested,
    ),
    scenario("leaky-stream-failed", "response.failed that quotes the request", _failed),
    scenario(
        "leaky-tool",
        "a call with the prompt as an argument, then status 400 that quotes both",
        reply(THINKING, function_call("$tool", {"said": "$said"})),
        _refusing(400),
    ),
)
