"""What a run reports to those who show it or record it.

The events of output items are those of the stream, renumbered over the whole run.
"""

from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

from openai_responses.endings import Ending
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.json_input import JsonObject
from openai_responses.models.usage import Usage
from openai_responses.repairs.finding import TriedRepair
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import NO_CARD, ItemEvent

GIVEN_UP: Item = {"type": "reasoning", "summary": []}
"""Ends a thought or a call of an attempt that failed: nothing of it is kept."""


class ToolOutput(NamedTuple):
    """A call got its output; `item` is the input item that gives it to the model.

    `card` is that of the tool's result.
    """

    output_index: int
    item: Item
    failed: bool = False
    card: JsonObject = NO_CARD


class ResponseDone(NamedTuple):
    """One response ended, however it did."""


class Status(NamedTuple):
    """A status line for the user who waits."""

    message: str
    tried: TriedRepair | None = None
    """The repair that is tried after a refusal."""
    reason: str = ""
    """For the log."""
    is_retry: bool = False
    """Whether the same request failed and is sent again."""
    is_note: bool = True
    """Whether the line is worth reading later: the last line counts those."""
    subject: str = ""
    """What the last line says of it: money, or a setting without effect."""


class Trace(NamedTuple):
    """What the log needs to know about the last response."""

    request_id: str = ""
    """OpenAI's own."""
    model: str = ""
    """The one that answered."""
    status: int | None = None
    """That of HTTP."""
    error: ApiError = ApiError()
    removed: Mapping[str, int] = MappingProxyType({})
    """How many items the API took out of the input, by its reasons."""
    skipped: Mapping[str, int] = MappingProxyType({})
    """How many events of the run could not be read, by what they are."""
    subject: str = ""
    """The item or tool that the error names, with its place."""
    response_id: str = ""
    """For later requests, which are to be compared with this response."""
    cache: JsonObject = MappingProxyType({})
    """The server's diagnosis of the prompt cache, if it was asked for one."""
    retry_after: float | None = None
    """The seconds after which the server wants to be asked again."""


class HiddenMessage(NamedTuple):
    """A message of the model that is sent again but not shown."""

    output_index: int
    item: Item


SpentLimit = Literal["rounds", "calls", "seconds", "tokens"]
"""The limit of a run that is reached."""


class RunDone(NamedTuple):
    """The last event of every run, however it ended."""

    ending: Ending
    usage: Usage | None = None
    """The sum of all responses."""
    last_usage: Usage | None = None
    """That of the last response."""
    output: tuple[Item, ...] = ()
    """The finished items of the whole run, outputs of calls among them."""
    trace: Trace = Trace()
    usages: tuple[Usage, ...] = ()
    """Those of all responses."""
    limit: SpentLimit | None = None
    """What kept the model from calling more tools."""


class ModelAnswer(NamedTuple):
    """One answer of a model, the last thing that a provider yields."""

    ending: Ending
    request: ResponsesRequest
    """The one that was answered, with its repairs."""
    items: tuple[tuple[int, Item], ...] = ()
    """The finished ones, each with its index in the run."""
    usages: tuple[Usage, ...] = ()
    """Those of all attempts."""
    last_usage: Usage | None = None
    """That of the last attempt."""
    trace: Trace = Trace()
    has_shown: bool = True
    """Whether there is something to see."""

    @property
    def output(self) -> list[Item]:
        """The finished items."""
        return [item for _, item in self.items]


RunEvent = ItemEvent | ToolOutput | HiddenMessage | ResponseDone | Status | RunDone
RunEvents = AsyncGenerator[RunEvent, None]
