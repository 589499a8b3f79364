"""What the refusals of a run teach for later requests, and for the chat itself."""

from collections.abc import Callable

from openai_responses.json_input import JsonObject
from openai_responses.loop.events import RunEvent
from openai_responses.loop.tried_repairs import TriedRepairs
from openai_responses.models.resolve import ResolvedModel
from openai_responses.repairs.chat_repairs import ChatRepair
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.requests.build import ResponsesRequest, Settings, build_request


class RepairLearning:
    """Remembers the repairs of a run, as soon as it is known that they helped.

    `is_as_configured` says whether the request has only what its administrators set.
    With `has_row` the chat itself keeps what is about its items.
    """

    def __init__(
        self,
        memory: RepairMemory,
        scope: RepairScope,
        is_as_configured: Callable[[], bool],
        *,
        has_row: bool = False,
    ) -> None:
        self._memory = memory
        self._scope = scope
        self._is_as_configured = is_as_configured
        self._has_row = has_row
        self._tried = TriedRepairs()

    def note(self, event: RunEvent) -> list[ChatRepair]:
        """Note an event; return the repairs that the row of the chat has to keep."""
        for_row: list[ChatRepair] = []
        for tried in self._tried.note(event):
            repair = tried.repair
            if (
                self._has_row
                and isinstance(repair, ChatRepair)
                and repair.is_about_chat
            ):
                if tried.is_lasting:
                    for_row.append(repair)
            else:
                self._memory.learn(self._scope, tried, self._is_as_configured)
        return for_row


def is_built_of(
    sent: ResponsesRequest,
    model: ResolvedModel,
    body: JsonObject,
    settings: Settings,
) -> bool:
    """Say whether a request is what `body` and `settings` make of its chat.

    The repairs do not count: they are what the comparison is about.
    """
    text = sent.instructions or ""
    built = build_request(model, text, sent.input, body, settings)
    return sent.model_copy(update={"repairs": ()}) == built
