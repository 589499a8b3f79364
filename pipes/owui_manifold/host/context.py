"""What Open WebUI passes to a call in addition to the chat."""

from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

from openai_responses.json_input import JsonObject, value_at

EventCall = Callable[[dict[str, Any]], Awaitable[Any]]
"""Sends an event to the page of the caller, and returns its answer."""

EventEmitter = Callable[[JsonObject], Coroutine[Any, Any, None]]
"""Sends an event to the page of the caller; the host stores some of them."""


class HostContext(NamedTuple):
    """What the host passes in addition to the chat."""

    tools: Mapping[str, JsonObject]
    request: Any
    metadata: JsonObject
    event_call: EventCall | None
    event_emitter: EventEmitter | None

    @property
    def continues(self) -> bool:
        """Whether the answer has begun and is continued."""
        return bool(self.metadata.get("assistant_message_id"))

    def is_builtin(self, name: str) -> bool:
        """Say whether a tool is one of the host's own."""
        return bool(value_at(self.tools, name, "type") == "builtin")
