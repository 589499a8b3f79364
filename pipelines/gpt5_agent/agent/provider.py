"""The Responses API as the agent's provider."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

from gpt5_agent.agent.thoughts import read_answer_text
from gpt5_agent.ports import ModelAnswer
from openai_responses.endpoint import Endpoint
from openai_responses.items import Item, is_call, is_reasoning
from openai_responses.loop.attempts import Limits
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.recovery import RetryPolicy, drop_summary
from openai_responses.loop.run import run
from openai_responses.requests.build import ResponsesRequest
from openai_responses.requests.tools import next_tool_choice
from openai_responses.transport.connections import Connections


class ProviderConfig(NamedTuple):
    """What all requests of a run share.

    `tools_ran` says that tools ran before: nothing is then sent twice.
    """

    request: ResponsesRequest
    endpoint: Endpoint
    connections: Connections
    limits: Limits
    tools_ran: bool = False


class ResponsesProvider:
    """Continues a history, one answer of the model at a time."""

    def __init__(self, config: ProviderConfig) -> None:
        """Send nothing yet."""
        self._config = config
        self._request = config.request
        self._has_run = config.tools_ran
        self._invalid_reasoning: list[Item] = []

    async def generate(
        self, history: Sequence[Item], tools: Sequence[Item]
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send a history; yield what happens, then the answer.

        Tools stay in the request when none may be called: the prompt cache depends on
        them.
        """
        config, sent = self._config, [
            one for one in history if one not in self._invalid_reasoning
        ]
        limits = config.limits
        if self._has_run:
            limits = limits._replace(retries=RetryPolicy(0))
        request = self._request.model_copy(
            update={"input": sent, "tool_choice": self._tool_choice(bool(tools))}
        )
        events = run(request, config.endpoint, config.connections, limits)
        async with aclosing(events):
            async for event in events:
                match event:
                    case Status():
                        self._apply_fallback(event.cause, sent)
                        yield event
                    case RunDone():
                        yield _build_model_answer(event)
                    case _:
                        yield event
        self._has_run = True

    def _tool_choice(self, may_call: bool) -> object:
        choice = self._request.tool_choice
        if not may_call:
            return "none" if self._request.tools else None
        return next_tool_choice(choice) if self._has_run else choice

    def _apply_fallback(self, cause: str, sent: Sequence[Item]) -> None:
        """Leave out of later requests what the server refused in this one."""
        match cause:
            case "reasoning":
                self._invalid_reasoning += filter(is_reasoning, sent)
            case "stream":
                self._request = self._request.model_copy(update={"stream": False})
            case "summary":
                reasoning = drop_summary(self._request.reasoning)
                self._request = self._request.model_copy(
                    update={"reasoning": reasoning}
                )


def _build_model_answer(ended: RunDone) -> ModelAnswer:
    calls = () if ended.ending.is_failure else tuple(filter(is_call, ended.output))
    return ModelAnswer(not calls, calls, read_answer_text(ended.output), run_end=ended)
