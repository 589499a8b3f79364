"""What a scenario is made of: replies, each of them items with an ending."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from simulator.asked import Asked
from simulator.disorder import Disorder
from simulator.options import Options

Item = dict[str, Any]


@dataclass(frozen=True)
class Ending:
    """How a response ends: its last event, and what that event says."""

    event: str = "response.completed"
    fields: dict[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """The status of the response at this ending."""
        return self.event.removeprefix("response.")


@dataclass(frozen=True)
class Reply:
    """One response: its items, its ending, what happens to its stream."""

    items: tuple[Item, ...]
    ending: Ending = Ending()
    disorder: Disorder | None = None


@dataclass(frozen=True)
class HttpReply:
    """An answer that is no response object at all."""

    status: int
    body: str
    content_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


Compose = Callable[[Asked, Options], Reply | HttpReply]


@dataclass(frozen=True)
class Scenario:
    """A name, a line on what it shows, and its replies in order."""

    name: str
    line: str
    replies: tuple[Reply | Compose, ...]
    options: str = ""

    def reply_to(self, asked: Asked, options: Options) -> Reply | HttpReply:
        """Return the reply that is due after the outputs the request carries."""
        due = self.replies[min(asked.rounds, len(self.replies) - 1)]
        return due(asked, options) if callable(due) else due


def scenario(
    name: str, line: str, *replies: Reply | Compose, options: str = ""
) -> Scenario:
    """Return a scenario from its replies; ``options`` are faults it always has."""
    return Scenario(name, line, replies, options)


def reply(
    *items: Item, ending: Ending | None = None, disorder: Disorder | None = None
) -> Reply:
    """Return a response made of items."""
    return Reply(items, ending or Ending(), disorder)


def incomplete(reason: str = "max_output_tokens") -> Ending:
    """End because a limit was reached."""
    return Ending("response.incomplete", {"incomplete_details": {"reason": reason}})


def failed(code: str, text: str) -> Ending:
    """End because the response failed."""
    return Ending("response.failed", {"error": {"code": code, "message": text}})


def error_event(code: str, text: str, *, nested: bool, type: str) -> Ending:
    """End with an ``error`` event in one of its two shapes (responses-api.md §0.6)."""
    fields = {"code": code, "message": text, "param": None}
    if nested:
        return Ending("error", {"error": {"type": type, **fields}})
    return Ending("error", fields)


def words_of(scenarios: tuple[Scenario, ...]) -> Iterator[str]:
    """Yield one line for each scenario, to be printed."""
    width = max(len(one.name) for one in scenarios)
    for one in scenarios:
        yield f"{one.name:<{width}}  {one.line}"
