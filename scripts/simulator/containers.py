"""The code containers: each dies twenty minutes after its last use.

Sources: reports in OpenAI's community (1321773), pydantic/pydantic-ai 7461.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from simulator.files import EXPIRED
from simulator.refusals import Refusal

Item = Mapping[str, Any]
MAX_IDLE_SECONDS = 20 * 60.0


class ContainerClock:
    """The last use of each container; one that was never seen is alive."""

    def __init__(self) -> None:
        """Start without containers."""
        self._used: dict[str, float] = {}

    def forget(self) -> None:
        """Forget all."""
        self._used.clear()

    def is_dead(self, container: str, now: float) -> bool:
        """Tell whether a container has been idle for too long."""
        idle = now - self._used.get(container, now)
        return container == EXPIRED or idle > MAX_IDLE_SECONDS

    def note_use(self, items: Sequence[Item], now: float) -> None:
        """Remember the containers in which code ran."""
        for item in items:
            if item.get("type") == "code_interpreter_call":
                self._used[item["container_id"]] = now

    def check(self, body: Item, items: Sequence[Item], now: float) -> None:
        """Raise the refusal for a dead container; note the use of the others."""
        for tool in body.get("tools") or []:
            container = tool.get("container")
            if isinstance(container, str) and self.is_dead(container, now):
                raise Refusal("Container is expired.")
        for item in items:
            if item.get("type") != "code_interpreter_call":
                continue
            container = item["container_id"]
            if self.is_dead(container, now):
                raise Refusal(
                    f"Container is expired. Expected container_id: {container}."
                )
        self.note_use(items, now)
