"""The containers in which code runs: each expires twenty minutes after its last use.

Sources: reports in OpenAI's community (1321773), pydantic/pydantic-ai 7461.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.files import EXPIRED
from simulator.refusals import refuse

Item = Mapping[str, Any]
MAX_IDLE_SECONDS = 20 * 60.0


class ContainerClock:
    """When each container was last used; an unknown one counts as just used."""

    def __init__(self) -> None:
        self._last_used: dict[str, float] = {}

    def forget(self) -> None:
        self._last_used.clear()

    def has_expired(self, container: str, now: float) -> bool:
        """Tell whether a container has been idle for too long."""
        idle_seconds = now - self._last_used.get(container, now)
        return container == EXPIRED or idle_seconds > MAX_IDLE_SECONDS

    def note_use(self, items: Sequence[Item], now: float) -> None:
        for item in items:
            if item.get("type") == "code_interpreter_call":
                self._last_used[item["container_id"]] = now

    def check(self, body: Item, items: Sequence[Item], now: float) -> None:
        """Raise the refusal for an expired container; note the use of the others."""
        for tool in body.get("tools") or []:
            container = tool.get("container")
            if isinstance(container, str) and self.has_expired(container, now):
                raise refuse("expired_container")
        for item in items:
            if item.get("type") == "code_interpreter_call":
                container = item["container_id"]
                if self.has_expired(container, now):
                    raise refuse("expired_container_of_item", id=container)
        self.note_use(items, now)
