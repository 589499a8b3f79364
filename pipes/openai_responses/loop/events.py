"""What a run reports to those who show it or record it.

The events of output items are those of the stream, renumbered over the whole run.
"""

from collections.abc import AsyncGenerator, Mapping
from types import MappingProxyType
from typing import NamedTuple

from openai_responses.endings import Ending
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.json_input import JsonObject
from openai_responses.models.usage import Usage
from openai_responses.repairs.finding import Trial
from openai_responses.requests.build import ResponsesRequest
from openai_responses.transport.stream import NO_CARD, ItemEvent

NO_THOUGHT: Item = {"type": "reasoning", "summary": []}
"""Ends the thought of an attempt that failed."""


class ToolOutput(NamedTuple):
    """A call got its output; `item` is the input item that gives it to the model.

    `card` is that of the tool's result.
    """

    output_index: int
    item: Item
    failed: bool = False
    card: JsonObject = NO_CARD


class ResponseDone(NamedTuple):
    """One response ended."""

    status: str


class Status(NamedTuple):
    """A status line for the person who waits.

    `trial` is the repair that is tried after a refusal. `reason` is for the log.
    `is_retry` says that the same request failed and is sent again. `is_note` says that
    the line is worth reading later: the last line counts those.
    """

    sentence: str
    trial: Trial | None = None
    reason: str = ""
    is_retry: bool = False
    is_note: bool = True


class Trace(NamedTuple):
    """What the log needs to know about the last response.

    `request_id` is OpenAI's own, `model` the one that answered, `status` that of HTTP,
    and `removed` counts the items that the API took out of the input, by reason.
    `subject` is the item or tool that the error names, with its place. `cache` is
    the server's diagnosis of the prompt cache, if it was asked for one; `response_id` is
    there if later requests are to be compared with this response.
    """

    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = ApiError()
    removed: Mapping[str, int] = MappingProxyType({})
    subject: str = ""
    response_id: str = ""
    cache: JsonObject = MappingProxyType({})


class HiddenMessage(NamedTuple):
    """A message of the model that is sent again but shown to nobody."""

    output_index: int
    item: Item


class RunWork(NamedTuple):
    """What a run took that people see as several rounds.

    `seconds` are those of the model and of tools, without the time of people.
    """

    rounds: int
    tool_calls: int
    seconds: float


class RunDone(NamedTuple):
    """The last event of every run, however it ended.

    `usages` are those of all responses, `usage` their sum, `last_usage` is that of the
    last one. `output` holds the finished items of the whole run, outputs of calls among
    them. `cost` is in US dollars, None if unknown. `usage_note` explains the tokens,
    `window_share` is how full the model's context window is, in percent.
    `work` is an agent's, `metadata` what a host stores with the last line.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = Trace()
    cost: float | None = None
    usages: tuple[Usage, ...] = ()
    usage_note: str = ""
    window_share: int = 0
    work: RunWork | None = None
    metadata: JsonObject = MappingProxyType({})


class ModelAnswer(NamedTuple):
    """One answer of a model, the last thing that a provider yields.

    `request` is the one that was answered, with its repairs, `items` are the finished
    ones, each with its index in the run. `usages` are those of all attempts, `last_usage`
    that of the last one. `has_shown` says whether there is something to see.
    """

    ending: Ending
    request: ResponsesRequest
    items: tuple[tuple[int, Item], ...] = ()
    usages: tuple[Usage, ...] = ()
    last_usage: Usage | None = None
    trace: Trace = Trace()
    has_shown: bool = True

    @property
    def output(self) -> list[Item]:
        """The finished items."""
        return [item for _, item in self.items]


RunEvent = ItemEvent | ToolOutput | HiddenMessage | ResponseDone | Status | RunDone
RunEvents = AsyncGenerator[RunEvent, None]
