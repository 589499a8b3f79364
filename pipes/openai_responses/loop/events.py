"""The closed union of what a run reports to those who show it or record it.

The events of output items are those of the stream, renumbered over the whole run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from openai_responses.endings import Ending
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.models.usage import Usage
from openai_responses.transport.stream import NO_CARD, ItemEvent


class ToolOutput(NamedTuple):
    """A call got its output; `item` is the input item that gives it to the model.

    `card` holds what a host shows beside it (`files`, `embeds`).
    """

    output_index: int
    item: Item
    failed: bool = False
    card: Mapping[str, Any] = NO_CARD


class ResponseDone(NamedTuple):
    """One response ended in an orderly way; `usage` is None when it was not told."""

    response_id: str
    status: str
    usage: Usage | None


class Status(NamedTuple):
    """Something a person should know while they wait, as a status line.

    `cause` names what was given up to get an answer (`recovery.Fallback`), or is empty.
    """

    sentence: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """What the log needs to know of the last response.

    `request_id` is OpenAI's own id of the request, `model` what answered it, `status`
    the HTTP status, if there was one, `error` what the API said went wrong, `removed`
    how many items the API took out of the input, by the reason.
    """

    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = field(default_factory=ApiError)
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunDone:
    """The last event of every run, however it ended.

    `usage` adds up all turns, `last_usage` is that of the last one; `output` holds the
    items of the whole run that ended, outputs of calls among them; `cost` is in US
    dollars, None where it is unknown or nobody asked.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = field(default_factory=Trace)
    cost: float | None = None


RunEvent = ItemEvent | ToolOutput | ResponseDone | Status | RunDone
