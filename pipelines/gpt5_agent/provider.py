"""The Responses API as the agent's provider."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from gpt5_agent.ports import Generation
from gpt5_agent.thoughts import answer_text
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call, is_reasoning
from openai_responses.loop.attempts import Limits
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.recovery import RetryPolicy
from openai_responses.loop.run import run
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.connections import Connections


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """What every request of a run has in common, and where it goes.

    `tools_ran` says that tools ran before: nothing is then sent twice.
    """

    request: ResponsesRequest
    endpoint: Endpoint
    connections: Connections
    limits: Limits
    tools_ran: bool = False


class ResponsesProvider:
    """Goes on with a history, one answer of the model at a time."""

    def __init__(self, config: ProviderConfig) -> None:
        """Send nothing yet."""
        self._config = config
        self._request = config.request
        self._is_later = config.tools_ran
        self._dead: list[Item] = []

    async def generate(
        self, history: Sequence[Item], tools: Sequence[Item]
    ) -> AsyncGenerator[RunEvent | Generation, None]:
        """Send a history; yield what happens, then what it came to.

        The tools stay in the request when none may be called, because the prompt cache
        lives on them.
        """
        config, sent = self._config, [one for one in history if one not in self._dead]
        limits = config.limits
        if self._is_later:
            limits = replace(limits, retries=RetryPolicy(0))
        request = self._request.model_copy(
            update={"input": sent, "tool_choice": self._choice(bool(tools))}
        )
        events = run(request, config.endpoint, config.connections, limits)
        async with aclosing(events):
            async for event in events:
                match event:
                    case Status():
                        self._learn(event.cause, sent)
                        yield event
                    case RunDone():
                        yield _generation(event)
                    case _:
                        yield event
        self._is_later = True

    def _choice(self, may_call: bool) -> object:
        """Return the choice of tools; what had to be called has been, after a round."""
        choice = self._request.tool_choice
        if not may_call:
            return "none" if self._request.tools else None
        if not self._is_later or choice == "none":
            return choice
        if isinstance(choice, Mapping) and choice.get("type") == "allowed_tools":
            return {**choice, "mode": "auto"}
        return None

    def _learn(self, cause: str, sent: Sequence[Item]) -> None:
        """Leave out of later requests what the server refused in this one."""
        match cause:
            case "reasoning":
                self._dead += filter(is_reasoning, sent)
            case "stream":
                self._request = self._request.model_copy(update={"stream": False})
            case "summary":
                reasoning = self._request.reasoning or {}
                rest = {k: v for k, v in reasoning.items() if k != "summary"}
                self._request = self._request.model_copy(
                    update={"reasoning": rest or None}
                )


def _generation(ended: RunDone) -> Generation:
    calls = () if ended.ending.is_failure else tuple(filter(is_call, ended.output))
    return Generation(not calls, calls, answer_text(ended.output), ended=ended)
