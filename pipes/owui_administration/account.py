"""One call of the pipe, as the administration sees it."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from openai_responses.endpoint import Endpoint
from openai_responses.errors import InvalidRequest
from openai_responses.transport.entra import EntraTokens, entra_scope
from owui_administration.endpoints import EndpointChoice, endpoint_trials
from owui_administration.limits import UserLimits
from owui_administration.telemetry import Telemetry
from shells.administration import EndpointTrial, EventWords, ResponseCounts

_Event = TypeVar("_Event")
_Outcome = TypeVar("_Outcome")


@dataclass(frozen=True, slots=True)
class Account:
    """What decides about one call of the pipe (`CallAccount`)."""

    limits: UserLimits
    telemetry: Telemetry
    tokens: EntraTokens
    endpoints: EndpointChoice | None = None
    """None where the valves of the pipe say where it is answered."""
    endpoints_text: str = ""
    """ENDPOINTS_JSON."""

    def endpoint_trials(self, models: Sequence[str]) -> list[EndpointTrial]:
        base_url = self.limits.facts["base_url"]
        return endpoint_trials(self.endpoints_text, base_url, models)

    def count_responses(
        self, model: str, counts: ResponseCounts, cost: float | None
    ) -> str:
        """Count responses; an unknown cost counts as none."""
        self.telemetry.count(counts, cost)
        return self.limits.count(model, counts, cost)

    def observe_run(
        self,
        events: AsyncGenerator[_Event, None],
        model: str,
        address: str,
        describe: Callable[[_Event], EventWords],
    ) -> AsyncGenerator[_Event, None]:
        events = self.telemetry.observe_run(events, model, address, describe)
        limits = self.limits
        if limits.table and limits.has_amounts:
            return limits.table.while_under_way(limits.facts["user_id"], events)
        return events

    async def observe_tool(
        self,
        name: str,
        work: Awaitable[_Outcome],
        has_failed: Callable[[_Outcome], bool],
    ) -> _Outcome:
        return await self.telemetry.observe_tool(name, work, has_failed)

    async def entra_token(self, base_url: str, scope: str) -> tuple[str, str]:
        """Return a token, or the problem; without a `scope` it is that of the server."""
        token_scope = scope.strip() or entra_scope(Endpoint(base_url, ""))
        try:
            token = await self.tokens.token(token_scope)
        except InvalidRequest as error:
            return "", str(error)
        return token, ""
