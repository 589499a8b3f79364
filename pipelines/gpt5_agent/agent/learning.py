"""What the refusals of a run teach for later ones."""

from collections.abc import Callable

from gpt5_agent.request import AgentRequest
from openai_responses.loop.events import RunEvent
from openai_responses.loop.trials import RunTrials
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.requests.build import ResponsesRequest


class RepairLearning:
    """Remembers the repairs that helped; what is known is left out at once."""

    def __init__(
        self, request: AgentRequest, model: str, is_configured: Callable[[], bool]
    ) -> None:
        """Begin with what the memory of the pipeline has about `model`.

        `is_configured` says whether what is sent has only what the valves set.
        """
        self._memory = request.repairs or RepairMemory()
        self._scope = RepairScope(request.endpoint.account(), model, request.user_id)
        self._trials = RunTrials()
        self._is_configured = is_configured

    def repaired(self, request: ResponsesRequest) -> ResponsesRequest:
        """Return a request with the known repairs."""
        known = self._memory.repairs(self._scope)
        return request.model_copy(update={"repairs": known})

    def note(self, event: RunEvent) -> None:
        """Note an event; remember the trials that it shows to have helped."""
        for trial in self._trials.note(event):
            self._memory.learn(self._scope, trial, self._is_configured)
