"""One call of the pipe, as the administration sees it."""

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from owui_administration.endpoints import EndpointChoice, NoEndpoint
from owui_administration.limits import UserLimits
from owui_administration.telemetry import Describe, Events, Telemetry


class Account(NamedTuple):
    """What decides about one call of the pipe. Each method is asked by name."""

    facts: dict[str, Any]
    limits: UserLimits
    telemetry: Telemetry
    endpoints: EndpointChoice | NoEndpoint | None = None
    """None where the valves of the pipe say where it is answered."""

    def observe_run(
        self, events: Events, facts: dict[str, Any], describe: Describe
    ) -> Events:
        """Return the events of a run (telemetry.py)."""
        return self.telemetry.observe_run(events, self.facts | facts, describe)

    async def observe_tool(
        self,
        name: str,
        work: Coroutine[Any, Any, Any],
        has_failed: Callable[[Any], bool],
    ) -> Any:
        """Return the result of a tool (telemetry.py)."""
        return await self.telemetry.observe_tool(name, work, has_failed)
