"""What Open WebUI passes to a call beside the chat."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from openai_responses.json_input import JsonObject

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]


class HostContext(NamedTuple):
    """What the host passes beside the chat."""

    tools: Mapping[str, JsonObject]
    request: Any
    metadata: JsonObject
    event_call: EventCall | None
    event_emitter: Any
