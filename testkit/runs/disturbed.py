"""Streams that gateways and proxies disturb, and what a run makes of them.

Each is a file of `testkit/streams/others`, named for what it shows.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from upstream.odd_streams import ANSWER

BEGIN = "It rains "
NONE: Mapping[str, int] = MappingProxyType({})


class Disturbed(NamedTuple):
    """What a stream has to come to."""

    kind: str
    """That of the ending."""
    shown: str = ""
    """The text of the answer."""
    words: str = ""
    """Some of the message."""
    cause: str = ""
    """Some of what the log says of the error."""
    skipped: Mapping[str, int] = NONE
    """The events that cannot be read, by what they are."""
    requests: int = 1
    """How often it is asked for, if two retries are allowed."""


STREAMS: Mapping[str, Disturbed] = {
    # An error that does not say so: LiteLLM and OpenRouter (in the middle of an
    # answer), Hugging Face's text generation, vLLM, and gateways that name the event
    # alone. One without a code may pass; one of an unknown type is tried once more.
    "error-without-a-type": Disturbed(
        "error", words="HTTP 400", cause="a part that the deployment does not take"
    ),
    "error-without-a-type-behind-text": Disturbed(
        "error", BEGIN, "(HTTP 502)", "Provider returned error"
    ),
    "error-that-is-a-text": Disturbed(
        "error", words="reported an error", cause="less than 4096 tokens", requests=2
    ),
    "error-named-by-its-object": Disturbed(
        "error", words="HTTP 400", cause="does not take this request"
    ),
    "error-of-the-event-name": Disturbed(
        "error", words="Sending it again does not", cause="does not take this request"
    ),
    "error-of-plain-words": Disturbed(
        "error", words="reported an error", cause="upstream connect error", requests=3
    ),
    "chat-completions": Disturbed("unreadable", words="Chat Completions"),
    # Proxies that keep a connection alive, and a line that was damaged on its way.
    "empty-data-between": Disturbed("completed", ANSWER, skipped={"empty": 5}),
    "unreadable-lines-between": Disturbed(
        "completed",
        ANSWER,
        skipped={"no object": 2, "no JSON": 2, "with odd fields": 1},
    ),
    "unreadable-end": Disturbed(
        "cut", ANSWER, "broke before the answer was complete", skipped={"no JSON": 1}
    ),
    "byte-order-mark-before-the-only-event": Disturbed("completed", ANSWER),
    "byte-order-mark-before-a-named-event": Disturbed("completed", ANSWER),
    # A server in Python that passes on what OpenAI's package raised.
    "printed-status-in-a-failure": Disturbed(
        "failed", words="longer than the model can read", cause="length is 4096 tokens"
    ),
    # Pydantic AI raises other words, and a server with an own code passes them on.
    "words-of-a-server-error": Disturbed(
        "failed", words="longer than the model can read", cause="length is 4096 tokens"
    ),
}
NOTHING_READABLE = "nothing-readable"
"""The one that is asked for again in one piece."""
