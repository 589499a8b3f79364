"""What the refusals of a run teach for later ones."""

from functools import partial

from gpt5_agent.agent.preparation import PreparedRun, is_as_valves_say
from gpt5_agent.request import AgentRequest
from openai_responses.loop.events import RunEvent
from openai_responses.loop.trials import RunTrials
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.requests.build import ResponsesRequest


class RepairLearning:
    """Remembers the repairs that helped; what is known is left out at once."""

    def __init__(self, request: AgentRequest, prepared: PreparedRun) -> None:
        """Begin with what the memory of the pipeline has."""
        self._prepared = prepared
        self._memory = request.repairs or RepairMemory()
        self._scope = RepairScope(
            request.endpoint.account(), prepared.request.model, request.user_id
        )
        self._trials = RunTrials()
        self._is_configured = partial(is_as_valves_say, request, prepared)

    def repaired_request(self) -> ResponsesRequest:
        """Return the first request with the known repairs."""
        known = self._memory.repairs(self._scope)
        return self._prepared.request.model_copy(update={"repairs": known})

    def note(self, event: RunEvent) -> None:
        """Note an event; remember the trials that it shows to have helped."""
        for trial in self._trials.note(event):
            self._memory.learn(self._scope, trial, self._is_configured)
