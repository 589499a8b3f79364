"""The Responses API as the agent's provider."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from functools import partial

from gpt5_agent.agent.preparation import PreparedRun, is_as_valves_say
from gpt5_agent.ports import ModelAnswer
from gpt5_agent.request import AgentRequest
from openai_responses.items import Item, is_call
from openai_responses.loop.events import RunDone, RunEvent, Status
from openai_responses.loop.run import run
from openai_responses.loop.trials import RunTrials
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.requests.tools import next_tool_choice
from strategies.thoughts import read_answer_text


class ResponsesProvider:
    """Continues a history, one answer of the model at a time."""

    def __init__(self, request: AgentRequest, prepared: PreparedRun) -> None:
        """Send nothing yet; what the server refused before is left out at once."""
        self._settings = request
        self._prepared = prepared
        self._memory = request.repairs or RepairMemory()
        self._scope = RepairScope(
            request.endpoint.account(), prepared.request.model, request.user_id
        )
        known = self._memory.repairs(self._scope)
        self._request = prepared.request.model_copy(update={"repairs": known})
        self._trials = RunTrials()
        self._tools_ran = prepared.earlier_rounds.is_continuation

    async def generate(
        self, history: Sequence[Item], tools: Sequence[Item]
    ) -> AsyncGenerator[RunEvent | ModelAnswer, None]:
        """Send a history; yield what happens, then the answer.

        Tools stay in the request when none may be called: the prompt cache depends on
        them.
        """
        settings = self._settings
        request = self._request.model_copy(
            update={
                "input": [*history],
                "tool_choice": self._tool_choice(bool(tools)),
            }
        )
        events = run(request, settings.endpoint, settings.connections, settings.limits)
        async with aclosing(events):
            async for event in events:
                self._follow_repairs(event)
                if isinstance(event, RunDone):
                    yield _build_model_answer(event)
                else:
                    yield event
        self._tools_ran = True

    def _follow_repairs(self, event: RunEvent) -> None:
        """Change later requests of this run, too; remember what helped."""
        if isinstance(event, Status) and event.trial:
            repairs = (*self._request.repairs, event.trial.repair)
            self._request = self._request.model_copy(update={"repairs": repairs})
        configured = partial(is_as_valves_say, self._settings, self._prepared)
        for trial in self._trials.note(event):
            self._memory.learn(self._scope, trial, configured)

    def _tool_choice(self, may_call: bool) -> object:
        """Return what the next request says about calls.

        A choice that forces a tool holds until tools ran once.
        """
        if not may_call:
            return "none" if self._request.tools else None
        choice = self._request.tool_choice
        return next_tool_choice(choice) if self._tools_ran else choice


def _build_model_answer(ended: RunDone) -> ModelAnswer:
    """Return what an answer came to; calls of a failed one are not made."""
    calls: tuple[Item, ...] = ()
    if not ended.ending.is_failure:
        calls = tuple(item for item in ended.output if is_call(item))
    return ModelAnswer(
        is_final=not calls,
        tool_calls=calls,
        text_content=read_answer_text(ended.output),
        run_end=ended,
    )
