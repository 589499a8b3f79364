"""What the refusals of a run teach for later requests, and for the chat itself."""

from collections.abc import Callable

from openai_responses.endpoint import Endpoint
from openai_responses.loop.events import RunEvent
from openai_responses.loop.tried_repairs import TriedRepairs
from openai_responses.repairs.chat_repairs import ChatRepair
from openai_responses.repairs.memory import RepairMemory, RepairScope
from openai_responses.repairs.request_repairs import Repair, TextOutputs
from openai_responses.requests.build import ResponsesRequest


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


def has_fields_of(sent: ResponsesRequest, other: ResponsesRequest) -> bool:
    """Say whether two requests differ in their chats alone.

    The repairs do not count: they are what the comparison is about.
    """
    chat = {"input": (), "instructions": None, "repairs": ()}
    return sent.model_copy(update=chat) == other.model_copy(update=chat)


def known_repairs(
    memory: RepairMemory, endpoint: Endpoint, model: str, user_id: str
) -> tuple[Repair, ...]:
    """Return what requests to a model need: by earlier refusals, and without any.

    Many bridges to Chat Completions take an image in the result of a tool for text: they
    refuse nothing, the model sees nothing, and a photo takes a million tokens
    (QuantumNous/new-api 7498, jundot/omlx 2989). No server takes one in a message so.
    """
    learned = memory.repairs(repair_scope(endpoint, model, user_id))
    given = () if endpoint.serves_openai else (TextOutputs(keeps_files=True),)
    return tuple(dict.fromkeys((*given, *learned)))


def repair_scope(endpoint: Endpoint, model: str, user_id: str) -> RepairScope:
    """Return whose requests a repair is about."""
    return RepairScope(endpoint.account(), model, user_id)
