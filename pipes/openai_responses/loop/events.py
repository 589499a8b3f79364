"""The closed union of events that a run reports to viewers and to storage.

`index` counts the output items of the whole run, over all its responses.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from openai_responses.endings import Ending
from openai_responses.errors import ApiError
from openai_responses.items import Item
from openai_responses.models.usage import Usage


@dataclass(frozen=True, slots=True)
class ItemStarted:
    """An item began; `item` holds what is known so far."""

    index: int
    item: Item


@dataclass(frozen=True, slots=True)
class Grew:
    """A text of the item at `index` grew by `text`.

    `kind` and `part` are those of the stream's deltas.
    """

    index: int
    kind: str
    part: int
    text: str


@dataclass(frozen=True, slots=True)
class Cited:
    """A place in a text of the message at `index` has a source.

    `annotation` is the wire's own; the final item contains it again.
    """

    index: int
    part: int
    annotation: Item


@dataclass(frozen=True, slots=True)
class Pictured:
    """An unfinished picture of the item at `index`.

    The fields are those of the stream's event.
    """

    index: int
    number: int
    image: str
    form: str


@dataclass(frozen=True, slots=True)
class ItemEnded:
    """An item is complete: `item` is the final wire dict, byte for byte.

    `card` holds what a host shows beside it (`files`, `links`, `notes`).
    """

    index: int
    item: Item
    card: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """A call got its output; `item` is the input item with it for the model.

    `card` holds what a host shows beside it (`files`, `embeds`).
    """

    index: int
    item: Item
    failed: bool = False
    card: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ResponseDone:
    """One response ended regularly; `usage` is None if it was not reported."""

    response_id: str
    status: str
    usage: Usage | None


@dataclass(frozen=True, slots=True)
class Status:
    """A status line for people who wait.

    `cause` names what was given up to get an answer (`Fallback.cause`), or is empty.
    """

    sentence: str
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """What the log needs to know about the last response.

    `request_id` is OpenAI's id of the request, `model` the model that answered,
    `status` the HTTP status if there was one, `error` the error that the API reported,
    `removed` the number of items that the API removed from the input, by reason.
    """

    request_id: str = ""
    model: str = ""
    status: int | None = None
    error: ApiError = field(default_factory=ApiError)
    removed: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunDone:
    """The last event of every run.

    `usage` adds up all responses, `last_usage` is that of the last one. `output` holds
    the finished items of the whole run, outputs of calls included. `cost` is in US
    dollars; None if it is unknown or was not asked for.
    """

    ending: Ending
    usage: Usage | None = None
    last_usage: Usage | None = None
    output: tuple[Item, ...] = ()
    trace: Trace = field(default_factory=Trace)
    cost: float | None = None


RunEvent = (
    ItemStarted
    | Grew
    | Cited
    | Pictured
    | ItemEnded
    | ToolOutput
    | ResponseDone
    | Status
    | RunDone
)
