"""What a response makes of the events of a server."""

from openai_responses.items import Item
from openai_responses.loop.events import RunEvent
from openai_responses.loop.response import ResponseState
from upstream import wire

EMPTY_END = wire.ended("completed", output=[])


def fed(*events: wire.Event) -> tuple[ResponseState, list[RunEvent]]:
    """Return a response that has taken these events, and what it told of them."""
    state = ResponseState()
    return state, [e for event in events for e in state.feed(wire.parsed(event))]


def output_of(*events: wire.Event) -> list[Item]:
    """Return its finished items."""
    return fed(*events)[0].output
