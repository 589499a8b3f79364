"""A fault: a response fails before it has any content."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.options import Options
from simulator.refusals import OVERLOADED_TEXT
from simulator.request import ValidRequest

Event = dict[str, Any]
CONNECTION_FAULTS = ("cut", "drop", "stall")
MESSAGES = {
    "server_error": (
        "The server had an error processing your request. Sorry about that! You can "
        "retry your request."
    ),
    "rate_limit_exceeded": "Rate limit reached for requests. Please try again in 10ms.",
    "server_is_overloaded": OVERLOADED_TEXT,
}
TYPES = {
    "rate_limit_exceeded": "requests",
    "server_is_overloaded": "service_unavailable_error",
}


@dataclass(frozen=True)
class FailedStart:
    """Fails the first attempts at an answer, after ``created`` and an empty item.

    ``ending`` is ``failed``, ``error``, ``error-flat``, ``both`` (``error``, then
    ``response.failed``, as the API does it), or what happens to the connection: ``cut``
    ends the body, ``drop`` aborts it, ``stall`` falls silent.
    """

    ending: str = "failed"
    code: str = "server_error"
    times: int = 1
    """How many attempts at one question fail, counted for each round of its tools."""
    after_rounds: int | None = 0
    """Only requests after this many rounds of tools; None: after any number."""
    text: str = ""
    """Only requests whose last user message contains this."""

    def applies_to(self, request: ValidRequest) -> bool:
        if self.after_rounds not in (None, request.rounds):
            return False
        return self.text in request.last_user_text

    def shorten(self, events: Sequence[Event]) -> list[Event]:
        """Return the events up to the first item, then the failure.

        For a fault of the connection, one more event follows: the one that it cuts off.
        """
        shortened = [event for event in events[:3] if "response" in event]
        added_type = "response.output_item.added"
        added = [event for event in events if event["type"] == added_type]
        shortened += added[:1]
        error = {"code": self.code, "message": MESSAGES[self.code]}
        typed_error = {"type": TYPES.get(self.code, self.code), **error, "param": None}
        error_event = {"type": "error", "error": typed_error}
        failed = {"status": "failed", "error": error, "usage": None}
        response = {**events[0].get("response", {}), **failed}
        failed_event = {"type": "response.failed", "response": response}
        events_of_ending: dict[str, list[Event]] = {
            "error": [error_event],
            "error-flat": [{"type": "error", **error, "param": None}],
            "failed": [failed_event],
            "both": [error_event, failed_event],
        }
        shortened += events_of_ending.get(self.ending, list(events[-1:]))
        return [
            {**event, "sequence_number": number}
            for number, event in enumerate(shortened)
        ]

    def add_break(self, options: Options, count: int) -> Options:
        """Return options that break the connection at the last of ``count`` events."""
        if self.ending not in CONNECTION_FAULTS:
            return options
        return Options({**options.given, self.ending: str(count - 1)})
