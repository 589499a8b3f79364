"""The Responses API as the agent's provider."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from gpt5_agent.agent.preparation import PreparedRun
from gpt5_agent.agent.thoughts import read_answer_text
from gpt5_agent.ports import ModelAnswer
from gpt5_agent.request import AgentRequest
from openai_responses.items import Item, is_call, is_reasoning
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.recovery import RetryPolicy, drop_summary
from openai_responses.loop.run import run
from openai_responses.requests.tools import next_tool_choice


class ResponsesProvider:
    """Continues a history, one answer of the model at a time."""

    def __init__(self, request: AgentRequest, prepared: PreparedRun) -> None:
        """Send nothing yet; after tools ran, nothing is sent twice."""
        self._settings = request
        self._request = prepared.request
        self._tools_ran = prepared.earlier_rounds.is_continuation
        self._invalid_reasoning: list[Item] = []

    async def generate(
        self, history: Sequence[Item], tools: Sequence[Item]
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send a history; yield what happens, then the answer.

        Tools stay in the request when none may be called: the prompt cache depends on
        them.
        """
        settings, limits = self._settings, self._settings.limits
        sent = [item for item in history if item not in self._invalid_reasoning]
        if self._tools_ran:
            limits = limits._replace(retries=RetryPolicy(0))
        choice = self._tool_choice(bool(tools))
        request = self._request.model_copy(
            update={"input": sent, "tool_choice": choice}
        )
        events = run(request, settings.endpoint, settings.connections, limits)
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Status):
                    self._apply_fallback(event.cause, sent)
                if isinstance(event, RunDone):
                    yield _build_model_answer(event)
                else:
                    yield event
        self._tools_ran = True

    def _tool_choice(self, may_call: bool) -> object:
        choice = self._request.tool_choice
        if not may_call:
            return "none" if self._request.tools else None
        return next_tool_choice(choice) if self._tools_ran else choice

    def _apply_fallback(self, cause: str, sent: Sequence[Item]) -> None:
        """Leave out of later requests what the server refused in this one."""
        update: dict[str, object] = {}
        match cause:
            case "reasoning":
                self._invalid_reasoning += filter(is_reasoning, sent)
            case "stream":
                update = {"stream": False}
            case "summary":
                update = {"reasoning": drop_summary(self._request.reasoning)}
        self._request = self._request.model_copy(update=update)


def _build_model_answer(ended: RunDone) -> ModelAnswer:
    calls = () if ended.ending.is_failure else tuple(filter(is_call, ended.output))
    return ModelAnswer(not calls, calls, read_answer_text(ended.output), run_end=ended)
