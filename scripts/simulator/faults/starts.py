"""A response that fails before anything of it can be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from simulator.options import Options
from simulator.request import ValidRequest

Event = dict[str, Any]
BREAKS = ("cut", "drop", "stall")
MESSAGES = {
    "server_error": (
        "The server had an error processing your request. Sorry about that! You can "
        "retry your request."
    ),
    "rate_limit_exceeded": "Rate limit reached for requests. Please try again in 10ms.",
    "server_is_overloaded": (
        "Our servers are currently overloaded. Please try again later."
    ),
}
TYPES = {
    "rate_limit_exceeded": "requests",
    "server_is_overloaded": "service_unavailable_error",
}


@dataclass(frozen=True)
class FailedStart:
    """Fails the first attempts at an answer behind ``created`` and an empty item.

    ``ending`` is ``failed``, ``error``, ``error-flat``, ``both`` (``error``, then
    ``response.failed``, as the API does it), or what happens to the connection: ``cut``
    ends the body, ``drop`` aborts it, ``stall`` falls silent.
    """

    ending: str = "failed"
    code: str = "server_error"
    times: int = 1
    """How many attempts at one question fail, counted for each round of its tools."""
    after_rounds: int | None = 0
    """Only requests behind that many rounds of tools; None: each of them."""
    text: str = ""
    """Only where the last user message holds this."""
    item: bool = True
    """Whether ``output_item.added`` with an empty item comes before the end."""
    usage: bool = False
    """Whether ``response.failed`` says what was billed."""

    def concerns(self, request: ValidRequest) -> bool:
        """Tell whether the answer to this request is to fail."""
        due = self.after_rounds in (None, request.rounds)
        return due and self.text in request.said

    def shorten(self, events: Sequence[Event]) -> list[Event]:
        """Return the events up to the first item, and the failure behind them."""
        start = [event for event in events[:3] if "response" in event]
        added = [
            event for event in events if event["type"].endswith("output_item.added")
        ]
        if self.item:
            start += added[:1]
        # A connection that breaks does so in the middle of an event, or before it.
        is_broken = self.ending in BREAKS
        start += events[-1:] if is_broken else self._build_last(events)
        numbered = []
        for number, event in enumerate(start):
            numbered.append({**event, "sequence_number": number})
        return numbered

    def break_off(self, options: Options, count: int) -> Options:
        """Return the options under which the connection breaks behind the events."""
        if self.ending not in BREAKS:
            return options
        return Options({**options.given, self.ending: str(count - 1)})

    def _build_last(self, events: Sequence[Event]) -> list[Event]:
        error = {"code": self.code, "message": MESSAGES[self.code]}
        if self.ending == "error-flat":
            return [{"type": "error", **error, "param": None}]
        typed = {"type": TYPES.get(self.code, self.code), **error, "param": None}
        nested = {"type": "error", "error": typed}
        usage = events[-1].get("response", {}).get("usage") if self.usage else None
        ended = {"status": "failed", "error": error, "usage": usage}
        failed = {
            "type": "response.failed",
            "response": {**events[0]["response"], **ended},
        }
        last = {"error": [nested], "failed": [failed], "both": [nested, failed]}
        return last[self.ending]
