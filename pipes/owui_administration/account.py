"""One call of the pipe, as the administration sees it."""

from collections.abc import Callable, Coroutine
from typing import Any

from owui_administration.telemetry import Describe, Events, Telemetry


class Account:
    """What decides about one call of the pipe. Each method is asked by name."""

    def __init__(self, facts: dict[str, Any], telemetry: Telemetry) -> None:
        """Keep the facts of the call."""
        self._facts = facts
        self._telemetry = telemetry

    def observe_run(
        self, events: Events, facts: dict[str, Any], describe: Describe
    ) -> Events:
        """Return the events of a run (telemetry.py)."""
        return self._telemetry.observe_run(events, self._facts | facts, describe)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        """Return the result of a tool (telemetry.py)."""
        return await self._telemetry.observe_tool(name, work, has_failed)
